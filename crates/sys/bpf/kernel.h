// SPDX-License-Identifier: MIT OR Apache-2.0
//
// What the programs need of the kernel, in place of a generated vmlinux.h. Structures name only the
// fields that are used: offsets are those of the running kernel, filled in when the programs are
// loaded (CO-RE), so that order and size here mean nothing.

#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef int s32;
typedef unsigned long long u64;
typedef long long s64;
typedef _Bool bool;
#define true 1
#define false 0
#define NULL ((void *)0)

#define SEC(name) __attribute__((section(name), used))
#define INLINE static inline __attribute__((always_inline))
#define OUTLINE static __attribute__((noinline))

// struct bpf_pidns_info of linux/bpf.h.
struct pid_in_namespace {
	u32 pid;
	u32 tgid;
};

// Helpers of the kernel, by their numbers in linux/bpf.h.
static void *(*bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;
static long (*bpf_map_update_elem)(void *map, const void *key, const void *value, u64 flags) =
	(void *)2;
static long (*bpf_map_delete_elem)(void *map, const void *key) = (void *)3;
static u64 (*bpf_ktime_get_ns)(void) = (void *)5;
static u64 (*bpf_get_current_pid_tgid)(void) = (void *)14;
static long (*bpf_get_current_comm)(void *text, u32 size) = (void *)16;
static long (*bpf_map_push_elem)(void *map, const void *value, u64 flags) = (void *)87;
static long (*bpf_map_pop_elem)(void *map, void *value) = (void *)88;
static long (*bpf_probe_read_user)(void *to, u32 size, const void *from) = (void *)112;
static long (*bpf_probe_read_kernel)(void *to, u32 size, const void *from) = (void *)113;
static long (*bpf_probe_read_kernel_str)(void *to, u32 size, const void *from) = (void *)115;
static long (*bpf_get_ns_current_pid_tgid)(u64 device, u64 inode, struct pid_in_namespace *to,
					   u32 size) = (void *)120;
static struct task_struct *(*bpf_get_current_task_btf)(void) = (void *)158;

// Reads a field behind a pointer of which the verifier knows nothing; zero where that fails.
#define READ(to, pointer, field) \
	bpf_probe_read_kernel(&(to), sizeof(to), &(pointer)->field)

// Whether the kernel has bpf_rdonly_cast() (Linux 6.2). The loader sets it, before the verifier
// looks: what is not taken costs nothing.
const volatile bool can_cast = false;

// Calls bpf_rdonly_cast(): the verifier then takes the address for one of a structure of this type
// (a number in the kernel's BTF). Neither clang-14 nor the loader knows calls of kernel functions:
// this is the instruction itself, in which load.rs replaces the number of the function, 0x74736163.
INLINE void *cast(u64 address, u64 type)
{
	register u64 from asm("r1") = address;
	register u64 as asm("r2") = type;
	register void *to asm("r0");

	asm volatile(".quad 0x7473616300002085"
		     : "=r"(to), "+r"(from), "+r"(as)
		     :
		     : "r3", "r4", "r5");
	return to;
}

#define TYPED(pointer) \
	((typeof(pointer))cast((u64)(pointer), __builtin_btf_type_id(*(pointer), 1)))

// The same as READ, by an ordinary load instead of a call where that is possible. A pointer
// that was read so can be compared and followed; the verifier allows no other arithmetic with it.
#define LOAD(to, pointer, field) \
	do { \
		if (can_cast) \
			(to) = TYPED(pointer)->field; \
		else \
			READ(to, pointer, field); \
	} while (0)

// The number that a pointer is, for what takes only numbers.
INLINE u64 address_of(void *pointer)
{
	u64 address = 0;

	bpf_probe_read_kernel(&address, sizeof(address), &pointer);
	return address;
}

// A number that stands for a pointer and for no other: the verifier allows no arithmetic with a
// pointer, but the distance of two.
INLINE u64 id_of(void *pointer)
{
	u64 id = (u64)pointer;

	asm volatile("%0 -= %1" : "+r"(id) : "r"(&can_cast));
	return id;
}

// Reads a field from the copy of the beginning of a structure, or behind the pointer where it lies
// beyond the copy: one call of the kernel for many fields.
#define FROM_COPY(to, copy, pointer, field) \
	do { \
		u32 offset = __builtin_preserve_field_info((pointer)->field, 0); \
		if (offset <= sizeof(copy) - sizeof(to)) \
			(to) = *(typeof(to) *)((void *)(copy) + offset); \
		else \
			READ(to, pointer, field); \
	} while (0)

// Map types of linux/bpf.h, what updates may do, and the way a map is declared to a loader.
enum {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_STACK = 23,
};
enum { BPF_ANY = 0, BPF_NOEXIST = 1 };
// The values of an array begin at a page, and so at a cache line.
enum { BPF_F_MMAPABLE = 1024 };
enum { EEXIST = 17 };
#define MAP(name, kind, key_type, value_type, most) \
	struct { \
		int (*type)[kind]; \
		int (*max_entries)[most]; \
		key_type *key; \
		value_type *value; \
	} name SEC(".maps")
#define ALIGNED_ARRAY(name, value_type, most) \
	struct { \
		int (*type)[BPF_MAP_TYPE_ARRAY]; \
		int (*map_flags)[BPF_F_MMAPABLE]; \
		int (*max_entries)[most]; \
		u32 *key; \
		value_type *value; \
	} name SEC(".maps")

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct hlist_node {
	struct hlist_node *next;
};

struct hlist_head {
	struct hlist_node *first;
};

struct block_device {
	u32 bd_dev;
};

struct super_block {
	u32 s_dev;
	unsigned long s_magic;
	struct block_device *s_bdev;
};

struct address_space {
	struct inode *host;
};

struct inode {
	u16 i_mode;
	struct super_block *i_sb;
	struct address_space *i_mapping;
	unsigned long i_ino;
	u32 i_rdev;
	u32 i_generation;
	struct hlist_head i_dentry;
};

struct qstr {
	const unsigned char *name;
};

struct dentry {
	struct dentry *d_parent;
	struct qstr d_name;
	union {
		struct hlist_node d_alias;
	} d_u;
};

struct file {
	struct address_space *f_mapping;
	u32 f_flags;
};

struct fdtable {
	u32 max_fds;
	struct file **fd;
};

struct files_struct {
	struct fdtable *fdt;
};

typedef struct {
	int counter;
} atomic_t;

struct signal_struct {
	atomic_t live;
};

struct task_struct {
	u32 flags;
	s32 pid;
	s32 tgid;
	struct files_struct *files;
	struct signal_struct *signal;
};

struct kiocb {
	struct file *ki_filp;
	void (*ki_complete)(struct kiocb *, long);
};

struct page {
	unsigned long compound_head;
	struct address_space *mapping;
};

struct folio {
	struct address_space *mapping;
	unsigned long index;
	u32 _nr_pages;
};

// Before Linux 6.15.
struct folio___old {
	u32 _folio_nr_pages;
};

struct bio_vec {
	struct page *bv_page;
};

struct bvec_iter {
	u64 bi_sector;
	u32 bi_size;
};

struct bio {
	struct bio *bi_next;
	struct block_device *bi_bdev;
	struct bvec_iter bi_iter;
	struct bio_vec *bi_io_vec;
	void *bi_private;
};

struct request {
	u32 cmd_flags;
	u32 __data_len;
	u64 __sector;
	struct bio *bio;
};

struct pt_regs {
	unsigned long di;
	unsigned long si;
	unsigned long dx;
	unsigned long r10;
	unsigned long orig_ax;
};

#pragma clang attribute pop

// Bits of request.cmd_flags, which move between versions of the kernel.
enum req_flag_bits {
	__REQ_SYNC = 11,
	__REQ_META = 12,
	__REQ_FUA = 17,
	__REQ_PREFLUSH = 18,
	__REQ_RAHEAD = 19,
	__REQ_SWAP = 24,
};
#define REQ(bit) \
	(1ULL << __builtin_preserve_enum_value(*(enum req_flag_bits *)bit, 1))

// Bits of the flags of a folio.
enum pageflags { PG_head = 6 };

// What to ask of a field, beside its offset (0).
enum { FIELD_EXISTS = 2 };

// linux/blk_types.h; these values have not moved since they exist.
enum {
	REQ_OP_MASK = 0xff,
	REQ_OP_READ = 0,
	REQ_OP_WRITE = 1,
	REQ_OP_FLUSH = 2,
	REQ_OP_DISCARD = 3,
	REQ_OP_SECURE_ERASE = 5,
	REQ_OP_ZONE_APPEND = 7,
	REQ_OP_WRITE_ZEROES = 9,
};

// linux/sched.h.
enum { PF_IO_WORKER = 0x10, PF_KTHREAD = 0x200000 };

// linux/stat.h.
enum { S_IFMT = 0170000, S_IFREG = 0100000, S_IFBLK = 0060000 };

// linux/magic.h: file systems that only look like storage.
enum {
	PROC_SUPER_MAGIC = 0x9fa0,
	SYSFS_MAGIC = 0x62656572,
	CGROUP_SUPER_MAGIC = 0x27e0eb,
	CGROUP2_SUPER_MAGIC = 0x63677270,
	DEBUGFS_MAGIC = 0x64626720,
	TRACEFS_MAGIC = 0x74726163,
};

INLINE struct inode *inode_of_file(struct file *file)
{
	struct address_space *mapping = NULL;
	struct inode *inode = NULL;
	LOAD(mapping, file, f_mapping);
	if (mapping)
		LOAD(inode, mapping, host);
	return inode;
}

INLINE struct file *file_of_descriptor(struct task_struct *task, s32 fd)
{
	struct files_struct *open = task->files;
	struct file **slots;
	struct file *file = NULL;
	struct fdtable *table;

	if (!open || fd < 0)
		return NULL;
	table = open->fdt;
	if (!table || (u32)fd >= table->max_fds)
		return NULL;
	slots = table->fd;
	bpf_probe_read_kernel(&file, sizeof(file), slots + fd);
	return file;
}

INLINE struct inode *inode_of_descriptor(struct task_struct *task, s32 fd)
{
	struct file *file = file_of_descriptor(task, fd);

	return file ? inode_of_file(file) : NULL;
}

// Pages of a folio. The field was renamed in Linux 6.15, and a folio of one page does not have it.
INLINE u64 pages_of(struct folio *folio)
{
	u64 flags = 0;
	u32 pages = 0;
	u64 head = 1ULL << __builtin_preserve_enum_value(*(enum pageflags *)PG_head, 1);

	// The flags are the first word of a folio in every version, but their type changed.
	bpf_probe_read_kernel(&flags, sizeof(flags), folio);
	if (!(flags & head))
		return 1;
	if (__builtin_preserve_field_info(((struct folio *)0)->_nr_pages, FIELD_EXISTS))
		READ(pages, folio, _nr_pages);
	else if (__builtin_preserve_field_info(((struct folio___old *)0)->_folio_nr_pages, FIELD_EXISTS))
		READ(pages, (struct folio___old *)folio, _folio_nr_pages);
	return pages ? pages : 1;
}
