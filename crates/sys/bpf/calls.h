// SPDX-License-Identifier: MIT OR Apache-2.0
//
// System calls: their numbers on x86-64, and what those that read or write a file ask for.

#pragma once

#include "kernel.h"

enum { READING = 0, WRITING = 1, FLUSHING = 2, DISCARDING = 3, SUBMITTING = 4 };

enum {
	SYS_READ = 0,
	SYS_WRITE = 1,
	SYS_LSEEK = 8,
	SYS_PREAD64 = 17,
	SYS_PWRITE64 = 18,
	SYS_READV = 19,
	SYS_WRITEV = 20,
	SYS_SENDFILE = 40,
	SYS_FSYNC = 74,
	SYS_FDATASYNC = 75,
	SYS_IO_SUBMIT = 209,
	SYS_SPLICE = 275,
	SYS_SYNC_FILE_RANGE = 277,
	SYS_PREADV = 295,
	SYS_PWRITEV = 296,
	SYS_COPY_FILE_RANGE = 326,
	SYS_PREADV2 = 327,
	SYS_PWRITEV2 = 328,
	SYS_IO_URING_ENTER = 426,
};

// Properties of read(2), write(2) and their relatives. Together they tell them apart, from read (0)
// and pread (1) to pwritev (7).
enum { HAS_OFFSET = 1, HAS_VECTOR = 2, WRITES = 4, NO_TRANSFER = 8 };
enum { IOVECS = 64 };

INLINE u8 transfer_of(u64 number)
{
	switch (number) {
	case SYS_READ:
		return 0;
	case SYS_PREAD64:
		return HAS_OFFSET;
	case SYS_READV:
		return HAS_VECTOR;
	case SYS_PREADV:
	case SYS_PREADV2:
		return HAS_VECTOR | HAS_OFFSET;
	case SYS_WRITE:
		return WRITES;
	case SYS_PWRITE64:
		return WRITES | HAS_OFFSET;
	case SYS_WRITEV:
		return WRITES | HAS_VECTOR;
	case SYS_PWRITEV:
	case SYS_PWRITEV2:
		return WRITES | HAS_VECTOR | HAS_OFFSET;
	default:
		return NO_TRANSFER;
	}
}

INLINE u8 operation_of_transfer(u8 transfer)
{
	return transfer & WRITES ? WRITING : READING;
}

// Bytes of a vector of the process; none where it is not in memory right now.
INLINE u64 bytes_of_vector(u64 address, u64 count)
{
	u64 bytes = 0;

	for (u32 index = 0; index < IOVECS; index++) {
		u64 length = 0;
		if (index >= count)
			break;
		bpf_probe_read_user(&length, sizeof(length), (void *)(address + index * 16 + 8));
		bytes += length;
	}
	return bytes;
}

INLINE u64 bytes_asked(u8 transfer, struct pt_regs *regs)
{
	return transfer & HAS_VECTOR ? bytes_of_vector(regs->si, regs->dx) : regs->dx;
}
