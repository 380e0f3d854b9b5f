// Lets a user-mode Linux kernel run on processors with larger register sets than it supports.
//
// It saves 2,696 bytes of a process's registers. On processors with AMX the host has 11,008, and
// PTRACE_SETREGSET must set all of them. This library, preloaded into the kernel, sets the rest to
// zero, which is its value in processes that never used it.
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static char registers[64 << 10]; // not on the stack: that kernel's are small
static size_t whole;             // how many bytes the host has, once known

static long set_all(pid_t pid, const struct iovec *part)
{
	struct iovec all = {registers, sizeof registers};

	if (whole == 0) {
		if (syscall(SYS_ptrace, PTRACE_GETREGSET, pid, NT_X86_XSTATE, &all) < 0)
			return -1;
		whole = all.iov_len;
		memset(registers, 0, sizeof registers);
	}
	if (part->iov_len >= whole) {
		errno = EFAULT;
		return -1;
	}
	memcpy(registers, part->iov_base, part->iov_len);
	all.iov_len = whole;
	return syscall(SYS_ptrace, PTRACE_SETREGSET, pid, NT_X86_XSTATE, &all);
}

long ptrace(enum __ptrace_request request, ...)
{
	va_list args;
	va_start(args, request);
	pid_t pid = va_arg(args, pid_t);
	void *addr = va_arg(args, void *);
	void *data = va_arg(args, void *);
	va_end(args);

	long word, result;
	int peek = request == PTRACE_PEEKTEXT || request == PTRACE_PEEKDATA || request == PTRACE_PEEKUSER;

	if (request == PTRACE_SETREGSET && addr == (void *)NT_X86_XSTATE && whole != 0)
		return set_all(pid, data);
	result = syscall(SYS_ptrace, request, pid, addr, peek ? &word : data);
	if (result < 0 && errno == EFAULT && request == PTRACE_SETREGSET && addr == (void *)NT_X86_XSTATE)
		return set_all(pid, data);
	if (peek && result >= 0) {
		errno = 0;
		return word;
	}
	return result;
}
