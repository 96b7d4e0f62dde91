// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Which file a block request is for, and how that file is called: shared by the programs that look
// at block requests.

#pragma once

#include "count.h"

// What a key's device and inode stand for. Only a file has an inode number.
enum { A_FILE = 0, A_DEVICE = 1, METADATA = 2, SWAP = 3, NOTHING = 4 };

enum { NAMES = 12, NAME_BYTES = 64 };

// An inode number is given again when a file is removed; the generation changes then.
struct file_key {
	u64 inode;
	u32 device;
	u32 generation;
};

struct key {
	struct file_key file;
	u32 tgid;
	u32 tid;
	u8 layer;
	u8 operation;
	u8 mode;
	u8 kind;
	u32 zero;
};

// The names from the file up to the root of its file system.
struct file_names {
	char names[NAMES][NAME_BYTES];
};

// With room made beforehand: what the kernel allocates as it goes may not be there at the moment it
// is needed.
MAP(files, BPF_MAP_TYPE_HASH, struct file_key, struct file_names, 8192);
MAP(unnamed, BPF_MAP_TYPE_PERCPU_ARRAY, u32, struct file_names, 1);

// Notes how a file is called when it is first seen: the file may be closed and its process gone
// before user space looks. Not static: the verifier looks at it once, not at each call; it must
// therefore be given the address of the inode as a number (`address_of`).
__attribute__((noinline)) int name_file(struct key *key, u64 inode_address)
{
	struct inode *inode = (void *)inode_address;
	u32 zero = 0;
	struct file_key file;
	struct hlist_node *alias = NULL;
	struct dentry *entry, *parent;
	struct file_names *names;
	const unsigned char *name;
	long failed;

	if (!key || key->kind != A_FILE)
		return 0;
	file = key->file;
	if (bpf_map_lookup_elem(&files, &file))
		return 0;
	names = bpf_map_lookup_elem(&unnamed, &zero);
	if (!names)
		return 0;
	failed = bpf_map_update_elem(&files, &file, names, BPF_NOEXIST);
	if (failed) {
		// Another thread may have been faster.
		if (failed != -EEXIST)
			drop();
		return 0;
	}
	names = bpf_map_lookup_elem(&files, &file);
	READ(alias, inode, i_dentry.first);
	if (!names || !alias)
		return 0;
	entry = (void *)alias - __builtin_preserve_field_info(((struct dentry *)0)->d_u.d_alias, 0);
	for (u32 level = 0; level < NAMES; level++) {
		parent = NULL;
		READ(parent, entry, d_parent);
		if (!parent || parent == entry)
			break;
		name = NULL;
		READ(name, entry, d_name.name);
		bpf_probe_read_kernel_str(names->names[level], NAME_BYTES, name);
		entry = parent;
	}
	return 0;
}

INLINE bool is_only_a_view(unsigned long magic)
{
	return magic == PROC_SUPER_MAGIC || magic == SYSFS_MAGIC || magic == CGROUP_SUPER_MAGIC ||
	       magic == CGROUP2_SUPER_MAGIC || magic == DEBUGFS_MAGIC || magic == TRACEFS_MAGIC;
}

// What identifies a file, copied from its inode.
struct identity {
	u64 beginning[24];
	struct super_block *super;
	struct address_space *mapping;
	unsigned long number;
	u32 generation;
	u32 device;
	u16 mode;
};

INLINE void look_at(struct identity *id, struct inode *inode)
{
	if (can_cast) {
		struct inode *typed = TYPED(inode);

		id->mode = typed->i_mode;
		id->super = typed->i_sb;
		id->mapping = typed->i_mapping;
		id->number = typed->i_ino;
		id->device = typed->i_rdev;
		id->generation = typed->i_generation;
		return;
	}
	bpf_probe_read_kernel(id->beginning, sizeof(id->beginning), inode);
	FROM_COPY(id->mode, id->beginning, inode, i_mode);
	FROM_COPY(id->super, id->beginning, inode, i_sb);
	FROM_COPY(id->mapping, id->beginning, inode, i_mapping);
	FROM_COPY(id->number, id->beginning, inode, i_ino);
	FROM_COPY(id->device, id->beginning, inode, i_rdev);
	FROM_COPY(id->generation, id->beginning, inode, i_generation);
}

INLINE void put(struct key *key, struct identity *id, u32 device)
{
	key->kind = A_FILE;
	key->file.device = device;
	key->file.inode = id->number;
	key->file.generation = id->generation;
}

// Puts the file into the key; false for what is no file on storage. `id` is room, shared because the
// stack is small.
INLINE bool identify(struct key *key, struct inode *inode, struct identity *id)
{
	u32 device = 0;
	unsigned long magic = 0;
	struct block_device *disk = NULL;

	look_at(id, inode);
	if ((id->mode & S_IFMT) == S_IFBLK) {
		key->kind = A_DEVICE;
		key->file.device = id->device;
		key->file.inode = 0;
		return true;
	}
	if (!id->super)
		return false;
	LOAD(disk, id->super, s_bdev);
	if (!disk) {
		LOAD(magic, id->super, s_magic);
		if ((id->mode & S_IFMT) != S_IFREG || is_only_a_view(magic))
			return false;
	}
	LOAD(device, id->super, s_dev);
	put(key, id, device);
	return true;
}

// The inode whose page cache the memory of a request belongs to, on whatever file system.
INLINE struct inode *owner_of_memory(struct bio *bio)
{
	struct bio_vec *vector = bio->bi_io_vec;
	struct page *page;
	u64 copy[4] = {};
	unsigned long head = 0;
	struct address_space *mapping = NULL;
	struct inode *inode = NULL;

	if (!vector)
		return NULL;
	page = vector->bv_page;
	if (!page)
		return NULL;
	bpf_probe_read_kernel(copy, sizeof(copy), page);
	FROM_COPY(head, copy, page, compound_head);
	if (head & 1) {
		page = (struct page *)(head - 1);
		READ(mapping, page, mapping);
	} else {
		FROM_COPY(mapping, copy, page, mapping);
	}
	// The lowest bits mark memory without a file.
	if (!mapping || ((u64)mapping & 3))
		return NULL;
	LOAD(inode, mapping, host);
	return inode;
}

// The same, if it lies on a device. Memory of a process, private or shared, belongs to none that
// does.
INLINE struct inode *inode_of_memory(struct bio *bio)
{
	struct inode *inode = owner_of_memory(bio);
	struct super_block *super = NULL;
	struct block_device *disk = NULL;
	u16 mode = 0;

	if (!inode)
		return NULL;
	LOAD(mode, inode, i_mode);
	if ((mode & S_IFMT) == S_IFBLK)
		return inode;
	LOAD(super, inode, i_sb);
	if (super)
		LOAD(disk, super, s_bdev);
	return disk ? inode : NULL;
}

// Direct I/O of most file systems (iomap) keeps a structure behind the bio that begins with a
// pointer to the kernel's I/O control block. Others keep something else there: what is found must
// be an open file on the very device that the bio goes to. Puts the file into the key.
INLINE struct inode *identify_direct(struct key *key, struct bio *bio, bool *is_async,
				     struct identity *id)
{
	// A structure that begins with a pointer.
	struct hlist_head *private = bio->bi_private;
	struct hlist_node *begins_with = NULL;
	struct kiocb *control;
	struct file *file = NULL;
	struct inode *inode = NULL;
	struct address_space *mapping = NULL;
	struct block_device *target = bio->bi_bdev, *disk = NULL;
	void *complete = NULL;

	if ((s64)private >= 0 || !target)
		return NULL;
	LOAD(begins_with, private, first);
	control = (void *)begins_with;
	if ((s64)control >= 0)
		return NULL;
	LOAD(file, control, ki_filp);
	if ((s64)file >= 0)
		return NULL;
	LOAD(mapping, file, f_mapping);
	if ((s64)mapping >= 0)
		return NULL;
	LOAD(inode, mapping, host);
	if ((s64)inode >= 0)
		return NULL;
	look_at(id, inode);
	if (id->mapping != mapping || (s64)id->super >= 0)
		return NULL;
	LOAD(disk, id->super, s_bdev);
	if (disk != target)
		return NULL;
	LOAD(complete, control, ki_complete);
	put(key, id, target->bd_dev);
	*is_async = complete != NULL;
	return inode;
}
