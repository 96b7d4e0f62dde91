// SPDX-License-Identifier: MIT OR Apache-2.0
//
// In which sizes some processes ask for I/O, and in which sizes the page cache and the device get it:
// exact sizes with their counts, by file, operation and call. docs/bpf.md has the definitions.

#include "calls.h"
#include "file.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

enum { ASKED = 0, CACHE = 1, DEVICE = 2 };
// What asked: `mode` of a key, where it is no transfer of calls.h.
enum { COPY_FILE_RANGE = 8, SENDFILE = 9, SPLICE = 10, FAULT = 11, RING = 12, NO_CALL = 13 };
enum { BLOCK_BYTES = 4096 };

// Threads are not told apart: `tgid` and `tid` of the key are zero.
struct size_key {
	struct key key;
	u64 size;
};

// All cumulative. `moved` are calls that moved something: those at the end of a file do not.
struct sum {
	u64 calls;
	u64 moved;
	u64 failed;
	u64 bytes;
	u64 sequential;
	u64 aligned;
};

// Where one file is read or written by a call.
struct side {
	struct key key;
	u64 offset;
	u32 active;
	u32 zero;
};

// The call a thread is in.
struct call {
	struct side from;
	struct side to;
	u64 size;
};

#include "follow.h"

MAP(sizes, BPF_MAP_TYPE_HASH, struct size_key, struct sum, 32768);
// Where the last read or write of a file ended.
MAP(ends, BPF_MAP_TYPE_HASH, struct key, u64, 16384);
// Files that wanted processes have written: whoever writes their pages back, it is for them.
MAP(written, BPF_MAP_TYPE_HASH, struct file_key, u8, 8192);
// Requests between their start and their issue. Entries of those that never are issued leave when
// others need the room.
MAP(flights, BPF_MAP_TYPE_LRU_HASH, u64, struct key, 16384);

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct pt_regs___more {
	unsigned long r8;
};

struct file___more {
	s64 f_pos;
};

struct kiocb___more {
	s64 ki_pos;
};

struct io_cqe {
	s32 fd;
};

struct io_kiocb {
	u8 opcode;
	struct io_cqe cqe;
};

struct io_rw {
	struct kiocb kiocb;
	u64 addr;
	u32 len;
};

#pragma clang attribute pop

INLINE struct sum *sum_of(struct key *key, u64 size)
{
	struct size_key of = { .key = *key, .size = size };
	struct sum none = {};

	return value_of(&sizes, &of, &none);
}

// A request or a folio: what has no offset in a file here, and does not fail.
INLINE void count_bytes(struct key *key, u64 size)
{
	struct sum *sum = sum_of(key, size);

	if (!sum)
		return;
	add(&sum->calls, 1);
	add(&sum->moved, 1);
	add(&sum->bytes, size);
}

INLINE void count_call(struct side *side, u64 size, s64 result)
{
	struct key key = side->key;
	struct sum *sum = sum_of(&key, size);
	u64 end = side->offset + (result > 0 ? result : 0);
	u64 *last;

	if (!sum)
		return;
	if (result < 0) {
		add(&sum->failed, 1);
		return;
	}
	add(&sum->calls, 1);
	if (!result)
		return;
	add(&sum->moved, 1);
	add(&sum->bytes, result);
	if (!(side->offset % BLOCK_BYTES) && !(result % BLOCK_BYTES))
		add(&sum->aligned, 1);
	// Of all kinds of calls together.
	key.mode = NO_CALL;
	last = bpf_map_lookup_elem(&ends, &key);
	if (last ? *last == side->offset : !side->offset)
		add(&sum->sequential, 1);
	if (last)
		*last = end;
	else
		bpf_map_update_elem(&ends, &key, &end, BPF_ANY);
}

// Frames of their own, because the stack is small.
OUTLINE bool take_file(struct key *key, struct inode *inode)
{
	struct identity id;

	if (!identify(key, inode, &id))
		return false;
	name_file(key, (u64)inode);
	return true;
}

OUTLINE bool take_direct(struct key *key, struct bio *bio)
{
	struct identity id;
	bool is_async = false;
	struct inode *inode = identify_direct(key, bio, &is_async, &id);

	if (inode)
		name_file(key, (u64)inode);
	return inode;
}

INLINE void mark_written(struct key *key)
{
	struct file_key file = key->file;
	u8 one = 1;

	if (key->kind != NOTHING && !bpf_map_lookup_elem(&written, &file) &&
	    bpf_map_update_elem(&written, &file, &one, BPF_ANY))
		drop();
}

// One side of a call: of the descriptor, unless it is no file on storage.
INLINE void open_side(struct side *side, s32 fd, u8 operation, u8 mode, u64 pointer, bool has_offset)
{
	struct file *file = file_of_descriptor(bpf_get_current_task_btf(), fd);
	struct key key = {};
	struct inode *inode;
	u64 offset = 0;

	side->active = 0;
	if (!file)
		return;
	inode = inode_of_file(file);
	if (!inode || !take_file(&key, inode))
		return;
	key.layer = ASKED;
	key.operation = operation;
	key.mode = mode;
	if (operation == WRITING)
		mark_written(&key);
	if (has_offset)
		offset = pointer;
	else if (pointer)
		bpf_probe_read_user(&offset, sizeof(offset), (void *)pointer);
	else
		READ(offset, (struct file___more *)file, f_pos);
	side->key = key;
	side->offset = offset;
	side->active = 1;
}

// How a call reads and writes: by which arguments.
struct form {
	s32 from;
	s32 to;
	u64 from_offset;
	u64 to_offset;
	u64 size;
	u8 mode;
	bool has_offset;
};

INLINE bool form_of(struct form *form, struct pt_regs *regs, u64 number)
{
	u8 transfer = transfer_of(number);

	form->from = form->to = -1;
	if (transfer != NO_TRANSFER) {
		form->mode = transfer;
		if (transfer & WRITES)
			form->to = regs->di;
		else
			form->from = regs->di;
		form->size = bytes_asked(transfer, regs);
		// preadv2(2) and pwritev2(2) with an offset of -1 use that of the descriptor.
		if ((transfer & HAS_OFFSET) && regs->r10 != (u64)-1) {
			form->from_offset = form->to_offset = regs->r10;
			form->has_offset = true;
		}
		return true;
	}
	switch (number) {
	case SYS_SENDFILE:
		form->mode = SENDFILE;
		form->to = regs->di;
		form->from = regs->si;
		form->from_offset = regs->dx;
		form->size = regs->r10;
		return true;
	case SYS_SPLICE:
	case SYS_COPY_FILE_RANGE:
		form->mode = number == SYS_SPLICE ? SPLICE : COPY_FILE_RANGE;
		form->from = regs->di;
		form->from_offset = regs->si;
		form->to = regs->dx;
		form->to_offset = regs->r10;
		READ(form->size, (struct pt_regs___more *)regs, r8);
		return true;
	default:
		return false;
	}
}

SEC("tp_btf/sys_enter")
int sys_enter(u64 *context)
{
	struct pt_regs *regs = (void *)context[0];
	struct form form = {};
	struct call *call;

	if (!is_wanted() || !form_of(&form, regs, context[1]))
		return 0;
	call = own_call();
	if (!call)
		return 0;
	call->size = form.size;
	open_side(&call->from, form.from, READING, form.mode, form.from_offset, form.has_offset);
	open_side(&call->to, form.to, WRITING, form.mode, form.to_offset, form.has_offset);
	return 0;
}

SEC("tp_btf/sys_exit")
int sys_exit(u64 *context)
{
	struct call *call = is_wanted() ? known_call() : NULL;

	if (!call)
		return 0;
	if (call->from.active)
		count_call(&call->from, call->size, context[1]);
	if (call->to.active)
		count_call(&call->to, call->size, context[1]);
	call->from.active = 0;
	call->to.active = 0;
	return 0;
}

INLINE bool is_same(struct file_key *one, struct file_key *other)
{
	return one->inode == other->inode && one->device == other->device &&
	       one->generation == other->generation;
}

SEC("tp_btf/mm_filemap_add_to_page_cache")
int mm_filemap_add_to_page_cache(u64 *context)
{
	struct folio *folio = (void *)context[0];
	struct address_space *mapping;
	struct inode *inode = NULL;
	struct key key = {};
	struct call *call;

	if (!is_wanted())
		return 0;
	mapping = folio->mapping;
	if (!mapping)
		return 0;
	READ(inode, mapping, host);
	if (!inode || !take_file(&key, inode))
		return 0;
	key.layer = CACHE;
	key.mode = NO_CALL;
	key.operation = READING;
	call = known_call();
	if (call && call->to.active && is_same(&call->to.key.file, &key.file))
		key.operation = WRITING;
	else if (key.kind == A_DEVICE &&
		 !(call && call->from.active && is_same(&call->from.key.file, &key.file)))
		key.kind = METADATA;
	count_bytes(&key, pages_of(folio) * BLOCK_BYTES);
	return 0;
}

// A page fault on a file that is mapped, where the page has to be looked for.
SEC("tp_btf/mm_filemap_fault")
int mm_filemap_fault(u64 *context)
{
	struct address_space *mapping = (void *)context[0];
	struct side side = {};
	struct inode *inode = NULL;

	if (!is_wanted())
		return 0;
	READ(inode, mapping, host);
	if (!inode || !take_file(&side.key, inode))
		return 0;
	side.key.layer = ASKED;
	side.key.operation = READING;
	side.key.mode = FAULT;
	side.offset = context[1] * BLOCK_BYTES;
	count_call(&side, BLOCK_BYTES, BLOCK_BYTES);
	return 0;
}

// Operations of linux/io_uring.h.
enum {
	IORING_OP_READV = 1,
	IORING_OP_WRITEV = 2,
	IORING_OP_READ_FIXED = 4,
	IORING_OP_WRITE_FIXED = 5,
	IORING_OP_READ = 22,
	IORING_OP_WRITE = 23,
};

// Its end is not seen here: it counts as if it moved what it asks for. A file that is registered with
// the ring is not known by a descriptor.
SEC("tp_btf/io_uring_submit_req")
int io_uring_submit_req(u64 *context)
{
	struct io_kiocb *request = (void *)context[0];
	struct io_rw *io = (void *)request;
	struct side side = {};
	u64 address = 0;
	u32 length = 0;
	s32 fd = -1;
	u8 opcode, operation = READING;
	bool is_vector = false;

	if (!is_wanted())
		return 0;
	opcode = request->opcode;
	switch (opcode) {
	case IORING_OP_READV:
		is_vector = true;
		break;
	case IORING_OP_READ_FIXED:
	case IORING_OP_READ:
		break;
	case IORING_OP_WRITEV:
		is_vector = true;
		operation = WRITING;
		break;
	case IORING_OP_WRITE_FIXED:
	case IORING_OP_WRITE:
		operation = WRITING;
		break;
	default:
		return 0;
	}
	READ(fd, request, cqe.fd);
	READ(length, io, len);
	READ(address, io, addr);
	READ(side.offset, (struct kiocb___more *)&io->kiocb, ki_pos);
	open_side(&side, fd, operation, RING, side.offset, true);
	if (!side.active) {
		side.key.kind = NOTHING;
		side.key.layer = ASKED;
		side.key.operation = operation;
		side.key.mode = RING;
	}
	if (is_vector)
		address = bytes_of_vector(address, length);
	else
		address = length;
	count_call(&side, address, address);
	return 0;
}

SEC("tp_btf/block_io_start")
int block_io_start(u64 *context)
{
	struct request *request = (void *)context[0];
	struct bio *bio = request->bio;
	u64 id = context[0];
	u32 operation = request->cmd_flags & REQ_OP_MASK;
	bool own = is_wanted(), found = false;
	struct block_device *disk;
	struct file_key file;
	struct inode *inode;
	struct key key = {};
	struct call *call;
	struct side *side;

	// A request of another that uses its memory again.
	bpf_map_delete_elem(&flights, &id);
	if (!bio || !request->__data_len)
		return 0;
	if (operation == REQ_OP_READ)
		key.operation = READING;
	else if (operation == REQ_OP_WRITE || operation == REQ_OP_ZONE_APPEND)
		key.operation = WRITING;
	else
		return 0;
	if (!own && key.operation == READING)
		return 0;
	if (request->cmd_flags & REQ(__REQ_META)) {
		if (!own)
			return 0;
		key.kind = METADATA;
		disk = bio->bi_bdev;
		key.file.device = disk ? disk->bd_dev : 0;
		found = true;
	}
	if (!found)
		found = own && take_direct(&key, bio);
	if (!found) {
		inode = own ? inode_of_memory(bio) : owner_of_memory(bio);
		found = inode && take_file(&key, inode);
	}
	call = own ? known_call() : NULL;
	side = NULL;
	if (call)
		side = key.operation == READING ? &call->from : &call->to;
	if (side && !side->active)
		side = NULL;
	if (!found && side) {
		key.kind = side->key.kind;
		key.file = side->key.file;
		found = true;
	}
	if (!found) {
		if (!own)
			return 0;
		disk = bio->bi_bdev;
		key.kind = A_DEVICE;
		key.file.device = disk ? disk->bd_dev : 0;
	}
	file = key.file;
	if (!own && !bpf_map_lookup_elem(&written, &file))
		return 0;
	// Pages of a device are what a file system keeps beside its files, unless it is read itself.
	if (own && key.kind == A_DEVICE && !(side && is_same(&side->key.file, &file)))
		key.kind = METADATA;
	key.layer = DEVICE;
	key.mode = NO_CALL;
	if (bpf_map_update_elem(&flights, &id, &key, BPF_ANY))
		drop();
	return 0;
}

// Neighbours may have been merged into it since it started; what is sent again counts once.
SEC("tp_btf/block_rq_issue")
int block_rq_issue(u64 *context)
{
	struct request *request = (void *)context[0];
	u64 id = context[0];
	struct key *flight = bpf_map_lookup_elem(&flights, &id);
	struct key key;

	if (!flight)
		return 0;
	key = *flight;
	bpf_map_delete_elem(&flights, &id);
	count_bytes(&key, request->__data_len);
	return 0;
}

// A request that becomes part of its neighbour is never issued.
SEC("tp_btf/block_rq_merge")
int block_rq_merge(u64 *context)
{
	u64 id = context[0];

	bpf_map_delete_elem(&flights, &id);
	return 0;
}
