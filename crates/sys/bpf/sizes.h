// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Sums of I/O by exact size, and what they are taken from: for the programs of iosize.bpf.c.

#pragma once

#include "calls.h"
#include "file.h"

enum { ASKED = 0, CACHE = 1, DEVICE = 2 };
// What asked: `mode` of a key, where it is no transfer of calls.h.
enum {
	COPY_FILE_RANGE = 8,
	SENDFILE = 9,
	SPLICE = 10,
	FAULT = 11,
	RING = 12,
	AIO = 13,
	NO_CALL = 14,
};
enum { BLOCK_BYTES = 4096 };

// Threads are not told apart: `tid` of the key is zero. `tgid` is, too, unless the caller wants to know
// which process asked.
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

// The last page fault of a thread: the page that was looked for, and whether it is a write of which
// nothing was seen yet.
struct fault {
	u64 mapping;
	u64 page;
	u64 is_write;
};

// The call a thread is in.
struct call {
	struct side from;
	struct side to;
	u64 size;
	struct fault fault;
};

#include "follow.h"

// Whether processes are told apart.
MAP(apart, BPF_MAP_TYPE_ARRAY, u32, u32, 1);
MAP(sizes, BPF_MAP_TYPE_HASH, struct size_key, struct sum, 32768);
// Where the last read or write of a file ended.
MAP(ends, BPF_MAP_TYPE_HASH, struct key, u64, 16384);
// Files that wanted processes have written: whoever writes their pages back, it is for them.
MAP(written, BPF_MAP_TYPE_HASH, struct file_key, u8, 8192);

// Of the process that asks, if processes are told apart.
INLINE u32 tgid_of_asker(void)
{
	u32 zero = 0;
	u32 *is_apart = bpf_map_lookup_elem(&apart, &zero);

	return is_apart && *is_apart ? bpf_get_current_pid_tgid() >> 32 : 0;
}

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

// Whether the last that moved something in the same direction ended where this begins; notes where
// this ends. All kinds of calls count together.
INLINE bool continues(struct key *key, u64 offset, s64 moved)
{
	struct key of = *key;
	u64 end = offset + moved;
	u64 *last;
	bool is_next;

	if (moved <= 0)
		return false;
	of.mode = NO_CALL;
	last = bpf_map_lookup_elem(&ends, &of);
	is_next = last ? *last == offset : !offset;
	if (last)
		*last = end;
	else
		bpf_map_update_elem(&ends, &of, &end, BPF_ANY);
	return is_next;
}

INLINE void count_call(struct side *side, u64 size, s64 result, bool is_next)
{
	struct sum *sum = sum_of(&side->key, size);

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
	if (is_next)
		add(&sum->sequential, 1);
}

INLINE void count_next(struct side *side, u64 size, s64 result)
{
	count_call(side, size, result, continues(&side->key, side->offset, result));
}

// A frame of its own, because the stack is small.
OUTLINE bool take_file(struct key *key, struct inode *inode)
{
	struct identity id;

	if (!identify(key, inode, &id))
		return false;
	name_file(key, address_of(inode));
	return true;
}

INLINE void mark_written(struct key *key)
{
	struct file_key file = key->file;
	u8 one = 1;

	if (key->kind != NOTHING && !bpf_map_lookup_elem(&written, &file) &&
	    bpf_map_update_elem(&written, &file, &one, BPF_ANY))
		drop();
}

// One side of a call, unless it is no file on storage: the offset is that of the caller.
INLINE void open_file(struct side *side, struct file *file, u8 operation, u8 mode)
{
	struct key key = {};
	struct inode *inode;

	side->active = 0;
	if (!file)
		return;
	inode = inode_of_file(file);
	if (!inode || !take_file(&key, inode))
		return;
	key.layer = ASKED;
	key.operation = operation;
	key.mode = mode;
	key.tgid = tgid_of_asker();
	if (operation == WRITING)
		mark_written(&key);
	side->key = key;
	side->active = 1;
}
