// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Processes that are wanted, with the children that they will have, and the system call that each of
// their threads is in: `struct call`, which a program defines before it includes this.

#pragma once

#include "count.h"

MAP(wanted, BPF_MAP_TYPE_HASH, u32, u8, 16384);
MAP(calls, BPF_MAP_TYPE_HASH, u32, struct call, 16384);

INLINE bool is_wanted(void)
{
	u32 tgid = bpf_get_current_pid_tgid() >> 32;

	return bpf_map_lookup_elem(&wanted, &tgid);
}

// The call of this thread, if it has ever been in one.
INLINE struct call *known_call(void)
{
	u32 tid = bpf_get_current_pid_tgid();

	return bpf_map_lookup_elem(&calls, &tid);
}

INLINE struct call *own_call(void)
{
	u32 tid = bpf_get_current_pid_tgid();
	struct call none = {};

	return value_of(&calls, &tid, &none);
}

// A wanted process's children are wanted from their first moment.
SEC("tp_btf/sched_process_fork")
int sched_process_fork(u64 *context)
{
	struct task_struct *parent = (void *)context[0];
	struct task_struct *child = (void *)context[1];
	u32 parent_tgid = parent->tgid, child_tgid = child->tgid;
	u8 one = 1;

	if (parent_tgid != child_tgid && bpf_map_lookup_elem(&wanted, &parent_tgid) &&
	    bpf_map_update_elem(&wanted, &child_tgid, &one, BPF_ANY))
		drop();
	return 0;
}

SEC("tp_btf/sched_process_exit")
int sched_process_exit(u64 *context)
{
	struct task_struct *task = (void *)context[0];
	struct signal_struct *signal = task->signal;
	u32 tid = task->pid, tgid = task->tgid;

	bpf_map_delete_elem(&calls, &tid);
	// The number of a process that has ended may go to another.
	if (signal && signal->live.counter == 0)
		bpf_map_delete_elem(&wanted, &tgid);
	return 0;
}
