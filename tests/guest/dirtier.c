// SPDX-License-Identifier: Apache-2.0
// A kernel that writes to random pages of a working set, so many a second.
//
// Its command line has five numbers: pages of memory, pages of the working set, pages
// to write in one tick of the ACPI timer times 2^32, and the most ticks to make up
// for after a pause.  It fills all memory first, as pages of zeros cost a migration
// nothing, then sends an R to the debug console.

typedef unsigned int u32;
typedef unsigned long long u64;

enum { PAGE = 4096, TIMER = 0x608, CONSOLE = 0xe9, FIRST_PAGE = 512 };

struct boot { u32 flags, lower, upper, device, line; };
struct gate { unsigned short low, selector, kind, high; } __attribute__((packed));

static struct gate gates[33];
static u64 segments[3] = { 0, 0x00cf9a000000ffffULL, 0x00cf92000000ffffULL };

__asm__(
    ".align 4\n"
    ".long 0x1badb002, 0, -0x1badb002\n"
    ".globl _start\n"
    "_start: mov $stack_end, %esp\n"
    "push %ebx\n"
    "call run\n"
    ".globl on_tick\n"
    "on_tick: push %eax; mov $0x20, %al; out %al, $0x20; pop %eax; iret\n"
    ".bss\n"
    ".skip 8192\n"
    "stack_end:\n"
    ".text\n");
void on_tick(void);

static inline void out(u32 port, u32 value)
{
    __asm__ volatile("outb %b0, %w1" : : "a"(value), "Nd"(port));
}

static inline u32 timer(void)
{
    u32 value;
    __asm__ volatile("inl %w1, %0" : "=a"(value) : "Nd"(TIMER));
    return value & 0xffffff;
}

static u32 number(const char **text)
{
    u32 value = 0;
    while (**text && (**text < '0' || **text > '9'))
        ++*text;
    while (**text >= '0' && **text <= '9')
        value = value * 10 + *(*text)++ - '0';
    return value;
}

// Let a timer wake the CPU a thousand times a second.
static void tick(void)
{
    struct { unsigned short size; void *at; } __attribute__((packed)) table;
    table.size = sizeof segments - 1;
    table.at = segments;
    __asm__ volatile(
        "lgdt %0; ljmp $8, $1f; 1: mov $16, %%eax; mov %%eax, %%ds;"
        "mov %%eax, %%es; mov %%eax, %%ss" : : "m"(table) : "eax", "memory");
    gates[32] = (struct gate){ (u32)on_tick, 8, 0x8e00, (u32)on_tick >> 16 };
    table.size = sizeof gates - 1;
    table.at = gates;
    __asm__ volatile("lidt %0" : : "m"(table) : "memory");
    static const unsigned char setup[][2] = {
        { 0x20, 0x11 }, { 0x21, 0x20 }, { 0x21, 4 }, { 0x21, 1 }, { 0x21, 0xfe },
        { 0xa1, 0xff }, { 0x43, 0x34 }, { 0x40, 1193 & 0xff }, { 0x40, 1193 >> 8 },
    };
    for (u32 i = 0; i < sizeof setup / sizeof *setup; i++)
        out(setup[i][0], setup[i][1]);
}

void run(const struct boot *boot);
void run(const struct boot *boot)
{
    const char *line = (const char *)boot->line;
    // The first word is the kernel's path, which has numbers, too.
    while (*line && *line != ' ')
        line++;
    u32 memory = number(&line), pages = number(&line), speed = number(&line);
    u32 most = number(&line);
    for (u32 page = FIRST_PAGE; page < memory; page++)
        *(volatile u32 *)(page * PAGE) = page;
    tick();
    out(CONSOLE, 'R');
    u32 random = 2463534242u, last = timer();
    for (u64 due = 0;; due &= 0xffffffffu) {
        __asm__ volatile("sti; hlt; cli");
        u32 now = timer(), passed = (now - last) & 0xffffff;
        last = now;
        due += (u64)(passed < most ? passed : most) * speed;
        for (u32 count = due >> 32; count; count--) {
            random ^= random << 13;
            random ^= random >> 17;
            random ^= random << 5;
            u32 page = FIRST_PAGE + (u32)(((u64)random * pages) >> 32);
            ++*(volatile u32 *)(page * PAGE);
        }
    }
}
