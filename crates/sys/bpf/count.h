// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Sums that programs keep in tables, and what had no room there.

#pragma once

#include "kernel.h"

MAP(dropped, BPF_MAP_TYPE_ARRAY, u32, u64, 1);

INLINE void add(u64 *counter, u64 amount)
{
	__sync_fetch_and_add(counter, amount);
}

INLINE void drop(void)
{
	u32 zero = 0;
	u64 *count = bpf_map_lookup_elem(&dropped, &zero);
	if (count)
		add(count, 1);
}

// The value of a key, which begins as `fresh`; none where there is no room.
INLINE void *value_of(void *map, const void *key, const void *fresh)
{
	void *known = bpf_map_lookup_elem(map, key);

	if (known)
		return known;
	bpf_map_update_elem(map, key, fresh, BPF_NOEXIST);
	known = bpf_map_lookup_elem(map, key);
	if (!known)
		drop();
	return known;
}

// The exponent of the largest power of two in a number below 2^48; of zero, zero.
INLINE u32 octave_of(u64 number)
{
	u32 octave = 0;

	if (number >> 32)
		octave = 32;
	if (number >> (octave + 16))
		octave += 16;
	if (number >> (octave + 8))
		octave += 8;
	if (number >> (octave + 4))
		octave += 4;
	if (number >> (octave + 2))
		octave += 2;
	if (number >> (octave + 1))
		octave += 1;
	return octave;
}
