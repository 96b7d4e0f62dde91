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

// Sums of a key, all cumulative. Requests in flight have started and are in no bucket. All that a
// request needs beside its bucket is in the first cache line.
struct totals {
	struct key key;
	// Of requests only.
	u64 started;
	u64 queue_ns;
	// After the queue; all of a call.
	u64 device_ns;
	u64 bytes;
	u64 asked_bytes;
	u64 submitted;
	u64 buckets[BUCKETS];
	char comm[16];
	// To whole cache lines.
	u64 nothing[2];
};

// A request between its start and its end, and the number of its sums. The id of a place without
// one is zero.
struct flight {
	u64 id;
	u64 start_ns;
	u64 issue_ns;
	u32 bytes;
	u32 number;
};

// Places of requests in flight. The address of a request selects four of them, two cache lines, of
// which the second is needed only while others are in the first.
enum { PLACES = 4, GATES_LOG2 = 13 };
struct gate {
	struct flight flights[PLACES];
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
	u32 calls;
};

enum { SUMS = 32768, GUESSES = 4096 };

// All with room made beforehand: what the kernel allocates as it goes may not be there when it is
// needed. Arrays are read without a call of the kernel: the sums of a key are in one, and its
// number is looked up only where the last number at the key's guess is that of another key.
MAP(numbers, BPF_MAP_TYPE_HASH, struct key, u32, SUMS);
ALIGNED_ARRAY(totals, struct totals, SUMS);
MAP(guesses, BPF_MAP_TYPE_ARRAY, u32, u32, GUESSES);
ALIGNED_ARRAY(gates, struct gate, 1 << GATES_LOG2);
MAP(settings, BPF_MAP_TYPE_ARRAY, u32, struct settings, 1);
// Numbers never used begin at `unused`; user space returns those of keys that it has removed.
MAP(unused, BPF_MAP_TYPE_ARRAY, u32, u32, 1);
struct {
	int (*type)[BPF_MAP_TYPE_STACK];
	int (*max_entries)[SUMS];
	u32 *value;
} returned SEC(".maps");

INLINE bool counts(void)
{
	u32 zero = 0;
	struct settings *set = bpf_map_lookup_elem(&settings, &zero);

	return !set || !set->filtered || is_wanted();
}

// The call that this thread is in, if calls are counted.
INLINE struct call *call_now(void)
{
	u32 zero = 0;
	struct settings *set = bpf_map_lookup_elem(&settings, &zero);
	struct call *call = set && set->calls ? known_call() : NULL;

	return call && call->start_ns ? call : NULL;
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

	if (bucket < BUCKETS)
		add(&sums->buckets[bucket], 1);
}

// Gives a key its number, and says whether there was one.
INLINE bool number_anew(struct key *key, struct inode *inode, u32 *number)
{
	u32 zero = 0, *unused_number;
	struct totals *made;

	if (bpf_map_pop_elem(&returned, number)) {
		unused_number = bpf_map_lookup_elem(&unused, &zero);
		if (!unused_number || *unused_number >= SUMS)
			return false;
		*number = __sync_fetch_and_add(unused_number, 1);
	}
	made = bpf_map_lookup_elem(&totals, number);
	if (!made)
		return false;
	bpf_get_current_comm(made->comm, sizeof(made->comm));
	name_file(key, address_of(inode));
	if (bpf_map_update_elem(&numbers, key, number, BPF_NOEXIST)) {
		bpf_map_push_elem(&returned, number, BPF_ANY);
		return false;
	}
	made->key = *key;
	return true;
}

INLINE u32 guess_of(struct key *key)
{
	u64 mixed = key->file.inode ^ ((u64)key->file.device << 32) ^ ((u64)key->tid << 20) ^
		    ((u32)key->layer << 3 ^ (u32)key->operation << 1 ^ key->mode);

	return mixed * 0x9e3779b97f4a7c15 >> 52;
}

INLINE bool same_key(struct key *one, struct key *other)
{
	u64 *left = (u64 *)one, *right = (u64 *)other;

	return left[0] == right[0] && left[1] == right[1] && left[2] == right[2] &&
	       left[3] == right[3];
}

INLINE struct totals *totals_of(struct key *key, struct inode *inode, u32 *number)
{
	u32 place = guess_of(key);
	u32 *guess = bpf_map_lookup_elem(&guesses, &place), *known;
	struct totals *sums;

	if (!guess)
		return NULL;
	*number = *guess;
	sums = bpf_map_lookup_elem(&totals, number);
	if (sums && same_key(&sums->key, key))
		return sums;
	known = bpf_map_lookup_elem(&numbers, key);
	if (known) {
		*number = *known;
	} else if (!number_anew(key, inode, number)) {
		drop();
		return NULL;
	}
	*guess = *number;
	return bpf_map_lookup_elem(&totals, number);
}

INLINE struct gate *gate_of(u64 id)
{
	u32 index = id * 0x9e3779b97f4a7c15 >> (64 - GATES_LOG2);

	return bpf_map_lookup_elem(&gates, &index);
}

// The request at its gate, between its start and its end.
INLINE struct flight *known_flight(struct gate *gate, u64 id)
{
	for (u32 index = 0; gate && index < PLACES; index++)
		if (gate->flights[index].id == id)
			return &gate->flights[index];
	return NULL;
}

INLINE void leave(struct flight *flight)
{
	// After all that was read and written there.
	asm volatile("" : : : "memory");
	flight->id = 0;
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
	bool of_file = !(flags & (REQ(__REQ_META) | REQ(__REQ_SWAP))) && key->operation != DISCARDING;
	struct call *call;
	struct identity id;
	bool is_async;

	// The control block of direct I/O tells both.
	if (of_file && key->operation <= WRITING) {
		inode = identify_direct(key, bio, &is_async, &id);
		if (inode)
			goto done;
	}
	if (key->operation == READING)
		is_async = flags & REQ(__REQ_RAHEAD);
	else
		is_async = !(flags & (REQ(__REQ_SYNC) | REQ(__REQ_FUA) | REQ(__REQ_PREFLUSH)));
	if (task->flags & PF_IO_WORKER)
		is_async = true;
	call = call_now();
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
		if (key->operation <= WRITING)
			inode = identify_memory(key, bio, task, call, &id);
		if (!inode && call) {
			inode = inode_of_descriptor(task, call->fd);
			if (inode && !identify(key, inode, &id))
				inode = NULL;
		}
	}
done:
	key->mode = is_async ? ASYNCHRONOUS : SYNCHRONOUS;
	return inode;
}

// Ends a request that is not to be counted.
INLINE void forget(struct flight *flight)
{
	u32 number = flight->number;
	struct totals *sums = bpf_map_lookup_elem(&totals, &number);

	if (sums)
		add(&sums->started, -1);
}

// Takes a place for a request at its gate; none if others were faster.
INLINE struct flight *enter(struct gate *gate, u64 id)
{
	struct flight *place, *oldest = gate->flights;
	u64 other;

	for (u32 index = 0; index < PLACES; index++) {
		place = &gate->flights[index];
		if (!place->id && !__sync_val_compare_and_swap(&place->id, 0, id))
			return place;
		if (place->start_ns < oldest->start_ns)
			oldest = place;
	}
	// The end of the oldest was not seen, most likely: its device may be gone.
	drop();
	other = oldest->id;
	if (__sync_val_compare_and_swap(&oldest->id, other, id) != other)
		return NULL;
	if (other)
		forget(oldest);
	return oldest;
}

SEC("tp_btf/block_io_start")
int block_io_start(u64 *context)
{
	struct request *request = (void *)context[0];
	struct task_struct *task = bpf_get_current_task_btf();
	u64 id = id_of((void *)context[0]);
	struct gate *gate = gate_of(id);
	struct key key = {};
	struct flight *flight;
	struct totals *sums;
	struct inode *inode;
	u32 number, bytes;

	if (!gate)
		return 0;
	flight = known_flight(gate, id);
	// The memory is used again while the request still counts as unfinished: its end was not seen.
	if (flight) {
		forget(flight);
		leave(flight);
		drop();
	}
	if (!(task->flags & PF_KTHREAD) && !counts())
		return 0;
	// What comes without a bio is the block layer's own: the flush that serves several flushes, or
	// a command of the driver.
	if (!request->bio)
		return 0;
	bytes = request->__data_len;
	if (!operation_of(request->cmd_flags, bytes, &key.operation))
		return 0;
	key.tgid = task->tgid;
	key.tid = task->pid;
	key.layer = BLOCK;
	inode = attribute(&key, request, task);
	sums = totals_of(&key, inode, &number);
	if (!sums)
		return 0;
	flight = enter(gate, id);
	if (!flight)
		return 0;
	flight->issue_ns = 0;
	flight->bytes = bytes;
	flight->number = number;
	add(&sums->started, 1);
	flight->start_ns = bpf_ktime_get_ns();
	return 0;
}

SEC("tp_btf/block_rq_issue")
int block_rq_issue(u64 *context)
{
	struct request *request = (void *)context[0];
	u64 id = id_of((void *)context[0]);
	struct flight *flight = known_flight(gate_of(id), id);

	// What is sent again was first sent when it was first sent.
	if (!flight || flight->issue_ns)
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
	u64 id = id_of((void *)context[0]);
	struct flight *flight = known_flight(gate_of(id), id);

	if (flight) {
		forget(flight);
		leave(flight);
	}
	return 0;
}

SEC("tp_btf/block_io_done")
int block_io_done(u64 *context)
{
	u64 id = id_of((void *)context[0]);
	struct flight *flight = known_flight(gate_of(id), id);
	u32 number;
	struct totals *sums;
	u64 elapsed_ns, queue_ns;

	if (!flight)
		return 0;
	number = flight->number;
	sums = bpf_map_lookup_elem(&totals, &number);
	if (sums) {
		elapsed_ns = bpf_ktime_get_ns() - flight->start_ns;
		queue_ns = flight->issue_ns ? flight->issue_ns - flight->start_ns : 0;
		if (queue_ns)
			add(&sums->queue_ns, queue_ns);
		add(&sums->device_ns, elapsed_ns - queue_ns);
		add(&sums->bytes, flight->bytes);
		count_latency(sums, elapsed_ns);
	}
	leave(flight);
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
	u64 now_ns;
	struct key key = {};
	struct identity id;
	struct inode *inode = NULL;
	struct totals *sums;
	struct call *call;
	struct task_struct *task = bpf_get_current_task_btf();
	u32 number;

	if (!is_traced(regs->orig_ax))
		return 0;
	call = known_call();
	if (!call || !call->start_ns)
		return 0;
	now_ns = bpf_ktime_get_ns();
	key.tgid = task->tgid;
	key.tid = task->pid;
	key.layer = SYSCALL;
	key.operation = call->operation;
	key.mode = call->mode;
	if (call->operation == SUBMITTING) {
		key.kind = NOTHING;
	} else {
		inode = inode_of_descriptor(task, call->fd);
		if (!inode || !identify(&key, inode, &id))
			goto done;
	}
	sums = totals_of(&key, inode, &number);
	if (sums) {
		count_latency(sums, now_ns - call->start_ns);
		add(&sums->device_ns, now_ns - call->start_ns);
		if (call->asked_bytes)
			add(&sums->asked_bytes, call->asked_bytes);
		if (result > 0 && call->operation == SUBMITTING)
			add(&sums->submitted, result);
		else if (result > 0)
			add(&sums->bytes, result);
	}
done:
	call->start_ns = 0;
	return 0;
}
