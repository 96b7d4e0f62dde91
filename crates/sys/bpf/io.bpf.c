// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Counts storage I/O where it is asked for (system calls) and where it reaches a device (block
// requests), by thread, file, operation and mode. All sums are kept here, in one hash map; user
// space only reads it. docs/bpf.md has the definitions.

#include "calls.h"
#include "file.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

enum { BLOCK = 0, SYSCALL = 1 };
enum { SYNCHRONOUS = 0, ASYNCHRONOUS = 1 };

// Latencies below 2^10 ns, then four buckets an octave, then those of 2^34 ns and above.
enum { FIRST_OCTAVE = 10, LAST_OCTAVE = 33, BUCKETS = 98 };

// All cumulative. `started` runs ahead of `ios` by what is in flight.
struct totals {
	u64 started;
	u64 ios;
	u64 bytes;
	u64 asked_bytes;
	u64 submitted;
	u64 queue_ns;
	u64 device_ns;
	u64 elapsed_ns;
	u64 buckets[BUCKETS];
	char comm[16];
};

// A request between its start and its end. The kernel uses the memory of a request again and again,
// so its entry stays, without a start when it has ended; of devices that are gone, entries leave when
// others need the room.
struct flight {
	struct key key;
	u64 start_ns;
	u64 issue_ns;
	u64 bytes;
};

// The system call a thread is in; one that is not counted has no entry or no start.
struct call {
	u64 start_ns;
	u64 asked_bytes;
	s32 fd;
	u8 operation;
	u8 mode;
};

#include "follow.h"

struct settings {
	u32 filtered;
};

// All with room made beforehand: what the kernel allocates as it goes may not be there at the moment
// it is needed.
MAP(totals, BPF_MAP_TYPE_HASH, struct key, struct totals, 32768);
MAP(fresh, BPF_MAP_TYPE_PERCPU_ARRAY, u32, struct totals, 1);
MAP(flights, BPF_MAP_TYPE_LRU_HASH, u64, struct flight, 16384);
MAP(settings, BPF_MAP_TYPE_ARRAY, u32, struct settings, 1);

INLINE bool is_filtered(void)
{
	u32 zero = 0;
	struct settings *set = bpf_map_lookup_elem(&settings, &zero);
	return set && set->filtered;
}

INLINE bool counts(void)
{
	return !is_filtered() || is_wanted();
}

INLINE u32 bucket_of(u64 ns)
{
	u32 octave;

	if (ns >> (LAST_OCTAVE + 1))
		return BUCKETS - 1;
	if (!(ns >> FIRST_OCTAVE))
		return 0;
	octave = octave_of(ns);
	return 1 + (octave - FIRST_OCTAVE) * 4 + ((ns >> (octave - 2)) & 3);
}

INLINE void count_latency(struct totals *sums, u64 ns)
{
	u32 bucket = bucket_of(ns);
	add(&sums->elapsed_ns, ns);
	if (bucket < BUCKETS)
		add(&sums->buckets[bucket], 1);
}

INLINE struct totals *totals_of(struct key *key, struct inode *inode)
{
	u32 zero = 0;
	struct totals *known = bpf_map_lookup_elem(&totals, key);
	struct totals *made;

	if (known)
		return known;
	made = bpf_map_lookup_elem(&fresh, &zero);
	if (!made)
		return NULL;
	bpf_get_current_comm(made->comm, sizeof(made->comm));
	name_file(key, (u64)inode);
	return value_of(&totals, key, made);
}

INLINE bool operation_of(u32 flags, u32 bytes, u8 *operation)
{
	switch (flags & REQ_OP_MASK) {
	case REQ_OP_READ:
		*operation = READING;
		return true;
	case REQ_OP_WRITE:
	case REQ_OP_ZONE_APPEND:
	case REQ_OP_WRITE_ZEROES:
		*operation = bytes ? WRITING : FLUSHING;
		return true;
	case REQ_OP_FLUSH:
		*operation = FLUSHING;
		return true;
	case REQ_OP_DISCARD:
	case REQ_OP_SECURE_ERASE:
		*operation = DISCARDING;
		return true;
	default:
		return false;
	}
}

// Pages of a device are how a file system keeps what is not in its files, unless the device is what
// the process has open.
INLINE struct inode *identify_memory(struct key *key, struct bio *bio, struct task_struct *task,
				     struct call *call, struct identity *id)
{
	struct inode *inode = inode_of_memory(bio);

	if (!inode || !identify(key, inode, id))
		return NULL;
	if (key->kind == A_DEVICE && !(call && inode_of_descriptor(task, call->fd) == inode))
		key->kind = METADATA;
	return inode;
}

// Which file a request is for, and whether somebody waits for it.
INLINE struct inode *attribute(struct key *key, struct request *request, struct task_struct *task)
{
	u32 flags = request->cmd_flags;
	struct bio *bio = request->bio;
	struct block_device *disk = bio->bi_bdev;
	struct inode *inode = NULL;
	struct call *call;
	struct identity id;
	bool is_async;

	if (key->operation == READING)
		is_async = flags & REQ(__REQ_RAHEAD);
	else
		is_async = !(flags & (REQ(__REQ_SYNC) | REQ(__REQ_FUA) | REQ(__REQ_PREFLUSH)));
	if (task->flags & PF_IO_WORKER)
		is_async = true;
	call = known_call();
	if (call && !call->start_ns)
		call = NULL;
	if (call && call->operation == SUBMITTING)
		is_async = true;

	key->file.device = disk ? disk->bd_dev : 0;
	// What a thread of the kernel does without a file, it does for the file system.
	key->kind = task->flags & PF_KTHREAD ? METADATA : A_DEVICE;
	// A file system gives back blocks when they belong to no file any more.
	if ((flags & REQ(__REQ_META)) || key->operation == DISCARDING) {
		key->kind = METADATA;
	} else if (flags & REQ(__REQ_SWAP)) {
		key->kind = SWAP;
	} else {
		if (key->operation <= WRITING) {
			inode = identify_direct(key, bio, &is_async, &id);
			if (!inode)
				inode = identify_memory(key, bio, task, call, &id);
		}
		if (!inode && call) {
			inode = inode_of_descriptor(task, call->fd);
			if (inode && !identify(key, inode, &id))
				inode = NULL;
		}
	}
	key->mode = is_async ? ASYNCHRONOUS : SYNCHRONOUS;
	return inode;
}

// Ends a request that is not to be counted.
INLINE void forget(struct flight *flight)
{
	struct totals *sums = bpf_map_lookup_elem(&totals, &flight->key);

	if (sums)
		add(&sums->started, -1);
	flight->start_ns = 0;
}

SEC("tp_btf/block_io_start")
int block_io_start(u64 *context)
{
	struct request *request = (void *)context[0];
	struct task_struct *task = bpf_get_current_task_btf();
	u64 ids = bpf_get_current_pid_tgid();
	u64 id = context[0];
	struct flight flight = {};
	struct key *key = &flight.key;
	struct totals *sums;
	struct inode *inode;
	struct flight *known;

	key->tgid = ids >> 32;
	key->tid = ids;
	known = bpf_map_lookup_elem(&flights, &id);
	// The memory is used again while the request still counts as unfinished: its end was not seen.
	if (known && known->start_ns) {
		forget(known);
		drop();
	}
	if (!(task->flags & PF_KTHREAD) && !counts())
		return 0;
	// What comes without a bio is the block layer's own: the flush that serves several flushes, or
	// a command of the driver.
	if (!request->bio)
		return 0;
	flight.bytes = request->__data_len;
	if (!operation_of(request->cmd_flags, flight.bytes, &key->operation))
		return 0;
	key->layer = BLOCK;
	inode = attribute(key, request, task);
	sums = totals_of(key, inode);
	if (!sums)
		return 0;
	flight.start_ns = bpf_ktime_get_ns();
	if (known) {
		*known = flight;
	} else if (bpf_map_update_elem(&flights, &id, &flight, BPF_ANY)) {
		drop();
		return 0;
	}
	add(&sums->started, 1);
	return 0;
}

SEC("tp_btf/block_rq_issue")
int block_rq_issue(u64 *context)
{
	struct request *request = (void *)context[0];
	u64 id = context[0];
	struct flight *flight = bpf_map_lookup_elem(&flights, &id);

	// What is sent again was first sent when it was first sent.
	if (!flight || !flight->start_ns || flight->issue_ns)
		return 0;
	flight->issue_ns = bpf_ktime_get_ns();
	// Neighbours may have been merged into it since it started.
	flight->bytes = request->__data_len;
	return 0;
}

// A request that becomes part of its neighbour ends without an end of its own.
SEC("tp_btf/block_rq_merge")
int block_rq_merge(u64 *context)
{
	u64 id = context[0];
	struct flight *flight = bpf_map_lookup_elem(&flights, &id);

	if (flight && flight->start_ns)
		forget(flight);
	return 0;
}

SEC("tp_btf/block_io_done")
int block_io_done(u64 *context)
{
	u64 id = context[0];
	struct flight *flight = bpf_map_lookup_elem(&flights, &id);
	struct totals *sums;
	u64 now_ns, queue_ns;

	if (!flight || !flight->start_ns)
		return 0;
	now_ns = bpf_ktime_get_ns();
	sums = bpf_map_lookup_elem(&totals, &flight->key);
	if (sums) {
		queue_ns = flight->issue_ns ? flight->issue_ns - flight->start_ns : 0;
		count_latency(sums, now_ns - flight->start_ns);
		add(&sums->queue_ns, queue_ns);
		add(&sums->device_ns, now_ns - flight->start_ns - queue_ns);
		add(&sums->bytes, flight->bytes);
		add(&sums->ios, 1);
	}
	flight->start_ns = 0;
	return 0;
}

INLINE bool is_traced(u64 number)
{
	switch (number) {
	case SYS_FSYNC:
	case SYS_FDATASYNC:
	case SYS_IO_SUBMIT:
	case SYS_SYNC_FILE_RANGE:
	case SYS_IO_URING_ENTER:
		return true;
	default:
		return transfer_of(number) != NO_TRANSFER;
	}
}

INLINE void describe(struct call *call, struct pt_regs *regs, u64 number)
{
	// SYNC_FILE_RANGE_WAIT_BEFORE and _WAIT_AFTER.
	const u64 waits = 1 | 4;
	u8 transfer = transfer_of(number);

	call->fd = regs->di;
	call->mode = SYNCHRONOUS;
	call->operation = FLUSHING;
	call->asked_bytes = 0;
	if (transfer != NO_TRANSFER) {
		call->operation = operation_of_transfer(transfer);
		call->asked_bytes = bytes_asked(transfer, regs);
	} else if (number == SYS_SYNC_FILE_RANGE) {
		call->asked_bytes = regs->dx;
		call->mode = regs->r10 & waits ? SYNCHRONOUS : ASYNCHRONOUS;
	} else if (number == SYS_IO_SUBMIT || number == SYS_IO_URING_ENTER) {
		call->operation = SUBMITTING;
		call->mode = ASYNCHRONOUS;
		call->fd = -1;
	}
}

SEC("tp_btf/sys_enter")
int sys_enter(u64 *context)
{
	struct pt_regs *regs = (void *)context[0];
	u64 number = context[1];
	struct call *call;

	if (!is_traced(number) || !counts())
		return 0;
	call = own_call();
	if (!call)
		return 0;
	describe(call, regs, number);
	call->start_ns = bpf_ktime_get_ns();
	return 0;
}

SEC("tp_btf/sys_exit")
int sys_exit(u64 *context)
{
	struct pt_regs *regs = (void *)context[0];
	s64 result = context[1];
	u64 now_ns, ids;
	struct key key = {};
	struct identity id;
	struct inode *inode = NULL;
	struct totals *sums;
	struct call *call;

	if (!is_traced(regs->orig_ax))
		return 0;
	call = known_call();
	if (!call || !call->start_ns)
		return 0;
	now_ns = bpf_ktime_get_ns();
	ids = bpf_get_current_pid_tgid();
	key.tgid = ids >> 32;
	key.tid = ids;
	key.layer = SYSCALL;
	key.operation = call->operation;
	key.mode = call->mode;
	if (call->operation == SUBMITTING) {
		key.kind = NOTHING;
	} else {
		inode = inode_of_descriptor(bpf_get_current_task_btf(), call->fd);
		if (!inode || !identify(&key, inode, &id))
			goto done;
	}
	sums = totals_of(&key, inode);
	if (sums) {
		count_latency(sums, now_ns - call->start_ns);
		add(&sums->asked_bytes, call->asked_bytes);
		if (result > 0 && call->operation == SUBMITTING)
			add(&sums->submitted, result);
		else if (result > 0)
			add(&sums->bytes, result);
		add(&sums->started, 1);
		add(&sums->ios, 1);
	}
done:
	call->start_ns = 0;
	return 0;
}
