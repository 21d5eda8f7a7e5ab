# SPDX-License-Identifier: Apache-2.0

import os
import subprocess
import sys
from pathlib import Path

import fixtures
import nova.conf
import testtools
import webob
from nova import exception
from nova.api.openstack import wsgi
from nova.api.validation.extra_specs import validators
from oslo_config import cfg
from oslo_config import fixture as config_fixture

from nova_perfvm import conf
from nova_perfvm.api import extra_specs
from nova_perfvm.policy import loader

CONF = nova.conf.CONF

ONE_CLASS = """\
schema_version: "1.0"
classes:
  everything: {default: true}
"""


class RegisterCase(testtools.TestCase):
    """Nova's own registry, filled anew as at the start of nova-api."""

    def setUp(self):
        super().setUp()
        self.config = self.useFixture(config_fixture.Config(CONF))
        conf.register_opts(CONF)
        self.log = self.useFixture(fixtures.FakeLogger(level=20))
        registered = dict(validators.VALIDATORS)
        self.addCleanup(validators.VALIDATORS.update, registered)
        self.addCleanup(validators.VALIDATORS.clear)

    def start(self, text=None, path=None):
        """Load all validators through their entry points."""
        if text is not None:
            path = Path(self.useFixture(fixtures.TempDir()).path) / "perfvm.yaml"
            path.write_text(text, encoding="utf-8")
        self.config.config(group="perfvm", policy_file=path and str(path))
        validators.VALIDATORS.clear()
        validators.load_validators()
        return path

    def refused(self, name, value):
        error = self.assertRaises(
            exception.ValidationError, validators.validate, name, value
        )
        return error.format_message()


class ValidPolicyTest(RegisterCase):
    def test_classes_of_the_built_in_policy(self):
        self.start()
        # Other namespaces are as before.
        validators.validate("hw:cpu_policy", "dedicated")
        validators.validate("acme:anything", "1")
        validators.validate("perfvm:class", "high-performance")
        validators.validate("perfvm:class", "general")
        self.assertIn(loader.load().digest, self.log.output)
        message = self.refused("perfvm:class", "high-perfomance")
        self.assertIn("high-performance, general", message)
        for key in ("perfvm:clas", "perfvm:", "perfvm:class:x"):
            self.assertIn(key, self.refused(key, "general"))

    def test_classes_of_the_policy_file(self):
        path = self.start(ONE_CLASS)
        validators.validate("perfvm:class", "everything")
        self.assertIn("one of: everything", self.refused("perfvm:class", "general"))
        self.assertIn(str(path), self.log.output)


class BadPolicyTest(RegisterCase):
    def test_every_key_is_refused_with_every_mistake(self):
        path = self.start("placement: slot\nmanaged_hosts: none\n")
        for key in ("perfvm:class", "perfvm:clas"):
            message = self.refused(key, "general")
            for words in (str(path), "schema_version", "'slot'", "'none'"):
                self.assertIn(words, message)
                self.assertIn(words, self.log.output)
        self.assertIn("until nova-api is restarted", self.log.output)
        self.assertNotIn("Traceback", self.log.output)
        for key in ("hw:cpu_policy", "acme:anything", "perfvm"):
            validators.validate(key, "dedicated")

    def test_no_file(self):
        for path, words in (
            ("", "[perfvm]policy_file: is empty"),
            ("/nonexistent/perfvm.yaml", "No such file"),
        ):
            self.start(path=path)
            self.assertIn(words, self.refused("perfvm:class", "general"))

    def test_any_other_fault_refuses_too(self):
        def fail(_path):
            raise RuntimeError("out of order")

        self.useFixture(fixtures.MonkeyPatch("nova_perfvm.policy.loader.load", fail))
        (validator,) = extra_specs.register()
        error = self.assertRaises(
            exception.ValidationError, validator.validate, "perfvm:class", "general"
        )
        self.assertIn("out of order", error.format_message())

    def test_the_answer_is_400_with_the_reason(self):
        self.start("placement: slot\n")

        def answer():
            with wsgi.ResourceExceptionHandler():
                validators.validate("perfvm:class", "general")

        fault = self.assertRaises(wsgi.Fault, answer)
        response = webob.Request.blank("/v2.1/flavors").get_response(fault)
        self.assertEqual(400, response.status_int)
        self.assertIn("'slot'", response.json["badRequest"]["message"])


class StartTest(testtools.TestCase):
    def test_validators_are_loaded_after_nova_conf(self):
        """What nova-api imports before it reads nova.conf loads no validator."""
        code = (
            "import sys, nova.api.openstack.wsgi_app\n"
            "sys.exit('nova.api.validation.extra_specs.validators' in sys.modules)"
        )
        environment = os.environ | {"OS_NOVA_DISABLE_EVENTLET_PATCHING": "1"}
        result = subprocess.run(
            [sys.executable, "-c", code],
            check=False,
            capture_output=True,
            env=environment,
            text=True,
        )
        self.assertEqual((0, ""), (result.returncode, result.stdout))

    def test_register_needs_no_parsed_configuration(self):
        fresh = cfg.ConfigOpts()
        self.useFixture(fixtures.MonkeyPatch("nova.conf.CONF", fresh))
        (validator,) = extra_specs.register()
        self.assertEqual("perfvm:class", validator.name)
