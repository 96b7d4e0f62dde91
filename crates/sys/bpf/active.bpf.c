// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Which parts of devices are read and written, and how soon again: counts of accesses by unit of
// 4 KiB, in tables of fixed size. When there are more units than fit, those of a part of all hash
// values are kept, a half, a quarter and so on. docs/active-set.md has the definitions.

#include "file.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

enum { SECTOR_SHIFT = 9, UNIT_SHIFT = 12 };
// Units that are looked at of one bio, 8 MiB, and bios of one request; what follows counts for the
// file of the last.
enum { BIO_UNITS = 2048, REQUEST_BIOS = 16 };
// Units that are kept before fewer are sampled; the table has room for those of before, until user
// space removes them.
enum { UNITS = 262144, UNITS_KEPT = 65536, LEVEL_MAX = 40 };
// Accesses to the same device from one access of a unit to the next: each up to 3, then four
// buckets an octave, then those of 2^33 and above.
enum { FIRST_OCTAVE = 2, LAST_OCTAVE = 32, BUCKETS = 128 };

struct unit_key {
	u64 number;
	u32 device;
	u32 zero;
};

struct unit {
	struct file_key file;
	// Accesses to the device before the last one to this unit.
	u64 last;
	u32 reads;
	u32 writes;
	u32 kind;
	u32 zero;
};

// All cumulative. Accesses are counted all, the others estimated from those of sampled units.
struct device {
	u64 accesses;
	u64 first;
	u64 again[BUCKETS];
};

// Units are sampled whose hash ends in `level` zeros; accesses are counted as first or again where it
// ends in `counted_level` zeros.
struct sampling {
	u32 level;
	u32 counted_level;
	u64 kept;
};

// Whether only the devices that user space has put into the table are looked at.
struct settings {
	u32 filtered;
};

MAP(units, BPF_MAP_TYPE_HASH, struct unit_key, struct unit, UNITS);
MAP(devices, BPF_MAP_TYPE_HASH, u32, struct device, 64);
MAP(fresh, BPF_MAP_TYPE_PERCPU_ARRAY, u32, struct device, 1);
MAP(settings, BPF_MAP_TYPE_ARRAY, u32, struct settings, 1);
MAP(sampling, BPF_MAP_TYPE_ARRAY, u32, struct sampling, 1);
// Units and parts of requests that had no room: figures of that time would be too low.
MAP(lost, BPF_MAP_TYPE_ARRAY, u32, u64, 1);
MAP(repeated, BPF_MAP_TYPE_LRU_HASH, u64, u64, 4096);

// What one bio does to its units.
struct access {
	struct file_key file;
	u32 device;
	u32 kind;
	u32 is_write;
	u32 zero;
};

// User space has the same function.
INLINE u64 hash_of(u64 number, u32 device)
{
	u64 hash = number ^ ((u64)device << 40);
	hash *= 0x9e3779b97f4a7c15ULL;
	hash ^= hash >> 32;
	hash *= 0xd6e8feb86659fd93ULL;
	return hash ^ (hash >> 32);
}

INLINE u32 bucket_of(u64 accesses)
{
	u32 octave;

	if (accesses >> (LAST_OCTAVE + 1))
		return BUCKETS - 1;
	if (accesses < 4)
		return accesses ? accesses - 1 : 0;
	octave = octave_of(accesses);
	return 3 + (octave - FIRST_OCTAVE) * 4 + ((accesses >> (octave - 2)) & 3);
}

INLINE void lose(void)
{
	u32 zero = 0;
	u64 *count = bpf_map_lookup_elem(&lost, &zero);
	if (count)
		add(count, 1);
}

INLINE bool is_filtered(void)
{
	u32 zero = 0;
	struct settings *set = bpf_map_lookup_elem(&settings, &zero);
	return !set || set->filtered;
}

INLINE struct device *device_of(u32 number)
{
	u32 zero = 0;
	struct device *known = bpf_map_lookup_elem(&devices, &number);
	struct device *made;

	if (known || is_filtered())
		return known;
	made = bpf_map_lookup_elem(&fresh, &zero);
	if (!made)
		return NULL;
	bpf_map_update_elem(&devices, &number, made, BPF_NOEXIST);
	known = bpf_map_lookup_elem(&devices, &number);
	if (!known)
		lose();
	return known;
}

// A unit that was not kept before. When there are too many, every second is sampled no more.
INLINE void keep(struct sampling *now, struct unit_key *key, struct unit *unit)
{
	u32 level = now->level;
	long failed = bpf_map_update_elem(&units, key, unit, BPF_NOEXIST);

	if (failed == -EEXIST)
		return;
	if (failed)
		lose();
	add(&now->kept, 1);
	if ((failed || now->kept > UNITS_KEPT) && level < LEVEL_MAX && now->level == level) {
		now->kept /= 2;
		now->level = level + 1;
		if (now->counted_level < level + 1)
			now->counted_level = level + 1;
	}
}

// One access to one unit, the `at`th of the device. Not static: the verifier looks at it once, not
// once for each turn of the loop that calls it.
__attribute__((noinline)) int touch(struct access *access, u64 number, u64 at)
{
	struct unit_key key = { .number = number };
	struct unit fresh_unit = {};
	struct unit *unit;
	struct device *device;
	struct sampling *now;
	u32 zero = 0, bucket;
	u64 hash, weight;
	bool counts;

	now = bpf_map_lookup_elem(&sampling, &zero);
	if (!access || !now)
		return 0;
	key.device = access->device;
	hash = hash_of(number, key.device);
	if (hash & ((1ULL << (now->level & 63)) - 1))
		return 0;
	device = bpf_map_lookup_elem(&devices, &key.device);
	if (!device)
		return 0;
	weight = 1ULL << (now->counted_level & 63);
	counts = !(hash & (weight - 1));
	unit = bpf_map_lookup_elem(&units, &key);
	if (!unit) {
		fresh_unit.file = access->file;
		fresh_unit.kind = access->kind;
		fresh_unit.last = at;
		fresh_unit.reads = !access->is_write;
		fresh_unit.writes = access->is_write;
		if (counts)
			add(&device->first, weight);
		keep(now, &key, &fresh_unit);
		return 0;
	}
	bucket = bucket_of(at > unit->last ? at - unit->last : 1);
	if (counts && bucket < BUCKETS)
		add(&device->again[bucket], weight);
	unit->last = at;
	unit->file = access->file;
	unit->kind = access->kind;
	if (access->is_write)
		__sync_fetch_and_add(&unit->writes, 1);
	else
		__sync_fetch_and_add(&unit->reads, 1);
	return 0;
}

// Accesses to all units from one sector to another.
__attribute__((noinline)) int touch_all(struct access *access, u64 sector, u64 end)
{
	struct device *device;
	u64 first, count, begin;
	u32 number;

	if (!access || end <= sector)
		return 0;
	number = access->device;
	device = bpf_map_lookup_elem(&devices, &number);
	if (!device)
		return 0;
	first = sector >> (UNIT_SHIFT - SECTOR_SHIFT);
	count = ((end - 1) >> (UNIT_SHIFT - SECTOR_SHIFT)) - first + 1;
	begin = __sync_fetch_and_add(&device->accesses, count);
	for (u32 index = 0; index < BIO_UNITS; index++) {
		if (index >= count)
			break;
		touch(access, first + index, begin + index);
	}
	if (count > BIO_UNITS)
		lose();
	return 0;
}

// The file whose data a bio carries, or the device: for what belongs to the file system, and for
// what a process reads of the device itself.
INLINE struct inode *attribute(struct key *key, struct bio *bio, u32 flags)
{
	struct block_device *disk = bio->bi_bdev;
	struct identity id;
	struct inode *inode;
	bool is_async;

	key->file.device = disk ? disk->bd_dev : 0;
	key->kind = A_DEVICE;
	if (flags & REQ(__REQ_META))
		return NULL;
	if (flags & REQ(__REQ_SWAP)) {
		key->kind = SWAP;
		return NULL;
	}
	inode = identify_direct(key, bio, &is_async, &id);
	if (inode)
		return inode;
	inode = inode_of_memory(bio);
	return inode && identify(key, inode, &id) ? inode : NULL;
}

// The driver gives a request back that it has no room for; it is issued again later.
SEC("tp_btf/block_rq_requeue")
int block_rq_requeue(u64 *context)
{
	struct request *request = (void *)context[0];
	u64 id = context[0], sector = request->__sector;

	if (bpf_map_update_elem(&repeated, &id, &sector, BPF_ANY))
		lose();
	return 0;
}

SEC("tp_btf/block_rq_issue")
int block_rq_issue(u64 *context)
{
	struct request *request = (void *)context[0];
	u32 flags = request->cmd_flags, operation = flags & REQ_OP_MASK, bytes = request->__data_len;
	u64 id = context[0], sector = request->__sector, from, to;
	u64 *before;
	struct access access = {};
	struct bio *bio = request->bio;

	if (!bio || !bytes || (operation != REQ_OP_READ && operation != REQ_OP_WRITE))
		return 0;
	before = bpf_map_lookup_elem(&repeated, &id);
	if (before) {
		bool is_same = *before == sector;
		bpf_map_delete_elem(&repeated, &id);
		if (is_same)
			return 0;
	}
	access.is_write = operation == REQ_OP_WRITE;
	access.device = bio->bi_bdev ? bio->bi_bdev->bd_dev : 0;
	if (!device_of(access.device))
		return 0;
	// Neighbours on the device may belong to different files.
	from = sector;
	for (u32 index = 0; index < REQUEST_BIOS && bio; index++) {
		struct key key = {};
		struct inode *inode = attribute(&key, bio, flags);

		if (inode)
			name_file(&key, address_of(inode));
		access.file = key.file;
		access.kind = key.kind;
		to = from + (bio->bi_iter.bi_size >> SECTOR_SHIFT);
		touch_all(&access, from, to);
		from = to;
		bio = bio->bi_next;
	}
	touch_all(&access, from, sector + (bytes >> SECTOR_SHIFT));
	return 0;
}
