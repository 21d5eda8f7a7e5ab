# SPDX-License-Identifier: Apache-2.0
"""A guest's kernel and its file system in memory, of Debian's packages."""

import pathlib
import re
import shutil
import subprocess

from tests.guest import agent

PACKAGES = (
    "busybox-static",
    "ethtool",
    "libc6",
    "libexpat1",
    "libmnl0",
    "libpython3.11-minimal",
    "libpython3.11-stdlib",
    "python3.11-minimal",
    "zlib1g",
)
# Names the kernel's package.
KERNEL = "linux-image-cloud-amd64"
# In the order in which they need each other; all lie below kernel/.
MODULES = (
    "drivers/virtio/virtio_ring",
    "drivers/virtio/virtio",
    "drivers/virtio/virtio_pci_legacy_dev",
    "drivers/virtio/virtio_pci_modern_dev",
    "drivers/virtio/virtio_pci",
    "net/core/failover",
    "drivers/net/net_failover",
    "drivers/net/virtio_net",
    "drivers/block/virtio_blk",
)
# Documentation, and modules of Python that no guest needs.
UNNEEDED = ("usr/share", "usr/lib/python3.11/unittest", "usr/lib/python3.11/test")
LIBRARIES = "usr/lib/x86_64-linux-gnu"
ADDRESS = "10.99.0.2"
HOSTNAME = "guest-x"
INIT = f"""\
#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin:/sbin:/usr/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
hostname {HOSTNAME}
for module in /lib/modules/*; do insmod $module; done
ip link set lo up
ip address add {ADDRESS}/24 dev eth0
ip link set eth0 up
exec python3 /agent.py >/dev/console 2>&1
"""


def build(directory, more_packages=(), more_modules=(), programs=()):
    """Make ``kernel`` and ``initrd`` in a directory.

    :param more_packages: of Debian, beside those that every guest has
    :param more_modules: of the kernel, in the order in which they need each other
    :param programs: of this machine, which come with their libraries
    """
    directory = pathlib.Path(directory)
    packages, root = directory / "packages", directory / "root"
    for path in (packages, root):
        path.mkdir()
    wanted = (*PACKAGES, *more_packages, _kernel_package())
    _run("apt-get", "download", "-q", *wanted, cwd=packages)
    boot = directory / "boot"
    for package in sorted(packages.iterdir()):
        kernel = package.name.startswith("linux-image")
        _run("dpkg", "-x", str(package), str(boot if kernel else root))
    (kernel,) = boot.glob("boot/vmlinuz-*")
    kernel.rename(directory / "kernel")
    for name in UNNEEDED:
        shutil.rmtree(root / name, ignore_errors=True)
    for name in ("proc", "sys", "dev", "tmp", "run", "lib/modules"):
        (root / name).mkdir(exist_ok=True)
    (modules,) = boot.glob("lib/modules/*/kernel")
    for number, name in enumerate((*MODULES, *more_modules)):
        source = modules / f"{name}.ko"
        shutil.copy(source, root / "lib/modules" / f"{number:02}-{source.name}")
    for name in programs:
        _copy_program(shutil.which(name), root)
    (root / "usr/bin/python3").symlink_to("python3.11")
    shutil.copy(agent.__file__, root / "agent.py")
    (root / "init").write_text(INIT)
    (root / "init").chmod(0o755)
    _run("sh", "-c", "find . | cpio -o -H newc --quiet >../initrd", cwd=root)
    for path in (packages, root, boot):
        shutil.rmtree(path)


def _copy_program(path, root):
    libraries = re.findall(r"=> (/\S+)", _run("ldd", path))
    for source, directory in (
        (path, "usr/bin"),
        *((one, LIBRARIES) for one in libraries),
    ):
        (root / directory).mkdir(parents=True, exist_ok=True)
        shutil.copy(source, root / directory)


def _kernel_package():
    depends = _run("apt-cache", "depends", KERNEL)
    return re.search(r"Depends: (linux-image-\S+)", depends)[1]


def _run(*argv, cwd=None):
    done = subprocess.run(argv, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        message = f"{' '.join(argv)}: {done.stderr}"
        raise RuntimeError(message)
    return done.stdout
