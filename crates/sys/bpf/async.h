// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Reads and writes that a thread does not wait for: requests to a ring (io_uring), and AIO.

#pragma once

#include "sizes.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct kiocb___more {
	s64 ki_pos;
};

struct io_cqe {
	s32 res;
	s32 fd;
};

struct io_kiocb {
	u8 opcode;
	u32 flags;
	struct io_cqe cqe;
	void *ctx;
};

struct io_rw {
	struct kiocb kiocb;
	u64 addr;
	u32 len;
};

#pragma clang attribute pop

// Operations of linux/io_uring.h.
enum {
	IORING_OP_READV = 1,
	IORING_OP_WRITEV = 2,
	IORING_OP_READ_FIXED = 4,
	IORING_OP_WRITE_FIXED = 5,
	IORING_OP_READ = 22,
	IORING_OP_WRITE = 23,
	IORING_OP_READV_FIXED = 60,
	IORING_OP_WRITEV_FIXED = 61,
};

// Its flags: the descriptor is a number among the files that are registered with the ring; nothing is
// said of its end if it succeeds.
enum { IOSQE_FIXED_FILE = 1 << 0, IOSQE_CQE_SKIP_SUCCESS = 1 << 6 };

// A request to a ring between its submission and its end.
struct ring_io {
	u64 offset;
	u64 size;
	u8 operation;
	bool is_next;
	u8 zero[2];
	u32 tgid;
};

// Entries of those whose end is not seen leave when others need the room.
MAP(ring_ios, BPF_MAP_TYPE_LRU_HASH, u64, struct ring_io, 16384);

INLINE bool ring_operation(u8 opcode, u8 *operation, bool *is_vector)
{
	*operation = READING;
	*is_vector = false;
	switch (opcode) {
	case IORING_OP_READV:
	case IORING_OP_READV_FIXED:
		*is_vector = true;
		return true;
	case IORING_OP_READ_FIXED:
	case IORING_OP_READ:
		return true;
	case IORING_OP_WRITEV:
	case IORING_OP_WRITEV_FIXED:
		*is_vector = true;
		*operation = WRITING;
		return true;
	case IORING_OP_WRITE_FIXED:
	case IORING_OP_WRITE:
		*operation = WRITING;
		return true;
	default:
		return false;
	}
}

INLINE void count_ring_io(struct ring_io *io, struct file *file, s64 result)
{
	struct side side = {};

	open_file(&side, file, io->operation, RING);
	side.offset = io->offset;
	// It may end in the context of a thread of the kernel.
	side.key.tgid = io->tgid;
	if (side.active)
		count_call(&side, io->size, result, io->is_next);
}

SEC("tp_btf/io_uring_submit_req")
int io_uring_submit_req(u64 *context)
{
	struct io_kiocb *request = (void *)context[0];
	struct io_rw *rw = (void *)request;
	u64 id = context[0], address = 0;
	struct ring_io io = {};
	struct key place = {};
	u32 length = 0, flags = 0;
	s32 fd = -1;
	bool is_vector;

	if (!is_wanted() || !ring_operation(request->opcode, &io.operation, &is_vector))
		return 0;
	READ(flags, request, flags);
	READ(fd, request, cqe.fd);
	READ(length, rw, len);
	READ(address, rw, addr);
	READ(io.offset, (struct kiocb___more *)&rw->kiocb, ki_pos);
	io.tgid = tgid_of_asker();
	io.size = is_vector ? bytes_of_vector(address, length) : length;
	// Requests of one ring may end in another order. Of its file only the descriptor is known yet.
	READ(place.file.inode, request, ctx);
	// The next process may have its ring at the same address.
	place.tgid = bpf_get_current_pid_tgid() >> 32;
	place.file.generation = fd;
	place.file.device = flags & IOSQE_FIXED_FILE;
	place.kind = NOTHING;
	place.operation = io.operation;
	io.is_next = continues(&place, io.offset, io.size);
	if (flags & IOSQE_CQE_SKIP_SUCCESS) {
		if (flags & IOSQE_FIXED_FILE)
			drop();
		else
			count_ring_io(&io, file_of_descriptor(bpf_get_current_task_btf(), fd), io.size);
	} else if (bpf_map_update_elem(&ring_ios, &id, &io, BPF_ANY)) {
		drop();
	}
	return 0;
}

// Now its file is known, however the request names it.
SEC("tp_btf/io_uring_complete")
int io_uring_complete(u64 *context)
{
	u64 id = context[1];
	struct io_kiocb *request = (void *)id;
	struct ring_io *known = bpf_map_lookup_elem(&ring_ios, &id);
	struct file *file = NULL;
	struct ring_io io;
	s32 result = 0;

	if (!known)
		return 0;
	io = *known;
	bpf_map_delete_elem(&ring_ios, &id);
	READ(file, &((struct io_rw *)request)->kiocb, ki_filp);
	READ(result, request, cqe.res);
	count_ring_io(&io, file, result);
	return 0;
}

// linux/aio_abi.h.
struct iocb {
	u64 data;
	u64 key_and_flags;
	u16 opcode;
	u16 priority;
	u32 fd;
	u64 buffer;
	u64 bytes;
	s64 offset;
};

enum { IOCB_CMD_PREAD = 0, IOCB_CMD_PWRITE = 1, IOCB_CMD_PREADV = 7, IOCB_CMD_PWRITEV = 8 };
enum { IOCBS = 1024 };

// Not static: the verifier looks at it once, not once for each turn of the loop that calls it.
__attribute__((noinline)) int count_iocb(u64 address)
{
	struct iocb iocb = {};
	struct side side = {};
	u8 operation;
	u64 size;

	bpf_probe_read_user(&address, sizeof(address), (void *)address);
	if (bpf_probe_read_user(&iocb, sizeof(iocb), (void *)address)) {
		drop();
		return 0;
	}
	if (iocb.opcode == IOCB_CMD_PREAD || iocb.opcode == IOCB_CMD_PREADV)
		operation = READING;
	else if (iocb.opcode == IOCB_CMD_PWRITE || iocb.opcode == IOCB_CMD_PWRITEV)
		operation = WRITING;
	else
		return 0;
	size = iocb.opcode >= IOCB_CMD_PREADV ? bytes_of_vector(iocb.buffer, iocb.bytes) : iocb.bytes;
	open_file(&side, file_of_descriptor(bpf_get_current_task_btf(), iocb.fd), operation, AIO);
	side.offset = iocb.offset;
	if (side.active)
		count_next(&side, size, size);
	return 0;
}

// The first requests of a list were accepted. Their ends are not seen: they count as if they moved
// what they ask for.
INLINE void count_iocbs(u64 list, s64 accepted)
{
	for (u32 index = 0; index < IOCBS; index++) {
		if (index >= accepted)
			break;
		count_iocb(list + index * sizeof(u64));
	}
	if (accepted > IOCBS)
		drop();
}
