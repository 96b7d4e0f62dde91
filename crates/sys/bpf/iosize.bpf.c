// SPDX-License-Identifier: MIT OR Apache-2.0
//
// In which sizes some processes ask for I/O, and in which sizes the page cache and the device get it:
// exact sizes with their counts, by file, operation and call. docs/bpf.md has the definitions.

#include "async.h"
#include "fault.h"
#include "sizes.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

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

#pragma clang attribute pop

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

INLINE void open_side(struct side *side, s32 fd, u8 operation, u8 mode, u64 pointer, bool has_offset)
{
	struct file *file = file_of_descriptor(bpf_get_current_task_btf(), fd);

	open_file(side, file, operation, mode);
	side->offset = 0;
	if (has_offset)
		side->offset = pointer;
	else if (pointer)
		bpf_probe_read_user(&side->offset, sizeof(side->offset), (void *)pointer);
	else if (file)
		READ(side->offset, (struct file___more *)file, f_pos);
}

SEC("tp_btf/sys_enter")
int sys_enter(u64 *context)
{
	struct pt_regs *regs = (void *)context[0];
	struct form form = {};
	struct call *call = is_wanted() ? own_call() : NULL;

	if (!call)
		return 0;
	call->fault.is_write = 0;
	if (!form_of(&form, regs, context[1]))
		return 0;
	call->size = form.size;
	open_side(&call->from, form.from, READING, form.mode, form.from_offset, form.has_offset);
	open_side(&call->to, form.to, WRITING, form.mode, form.to_offset, form.has_offset);
	return 0;
}

SEC("tp_btf/sys_exit")
int sys_exit(u64 *context)
{
	struct pt_regs *regs = (void *)context[0];
	struct call *call;

	if (!is_wanted())
		return 0;
	if (regs->orig_ax == SYS_IO_SUBMIT)
		count_iocbs(regs->dx, context[1]);
	call = known_call();
	if (!call)
		return 0;
	if (call->from.active)
		count_next(&call->from, call->size, context[1]);
	if (call->to.active)
		count_next(&call->to, call->size, context[1]);
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

// A frame of its own, because the stack is small.
OUTLINE bool take_direct(struct key *key, struct bio *bio)
{
	struct identity id;
	bool is_async = false;
	struct inode *inode = identify_direct(key, bio, &is_async, &id);

	if (inode)
		name_file(key, address_of(inode));
	return inode;
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
