// Package engine is a discrete-event model of a vLLM server with the V1 engine,
// whose truth is known: the life of each request, and each change of the engine
// with its time.
//
// A Server is one front end and one or more engines (data parallel ranks).
// Clients send requests. The front end processes them one after the other, and a router
// sends each to an engine, which works in steps. Time is virtual: AdvanceTo moves it,
// and there is no clock here. Equal Configs give equal runs, whatever the number of
// calls of AdvanceTo.
//
// # Modelled like vLLM
//
// The names in parentheses are vLLM's own, in vllm/v1.
//
//   - The scheduler (core/sched/scheduler.py, schedule): running requests are
//     first, in their order, each with as many tokens as it needs and the budget
//     (max_num_batched_tokens) allows, so prompts are computed in chunks. Then new
//     requests are admitted in the order of arrival, up to max_num_seqs, and none
//     in a step that preempts. A prompt is admitted only if all of it fits
//     (scheduler_reserve_full_isl), though its blocks are taken chunk by chunk.
//   - Preemption: if a request needs a block and none is free, the newest request
//     loses its blocks. It moves to the front of the queue with nothing computed.
//   - The KV cache (core/block_pool.py, core/kv_cache_manager.py): blocks, of
//     which the first is the unused null block. Only full blocks are cached, and
//     never the whole prompt, since its last token must be computed. Freed blocks
//     stay cached until they are reused: those freed longest ago first, and of one
//     request the last ones first.
//   - Observations of blocks that are followed (core/kv_cache_metrics.py): see
//     residency.go.
//   - Speculative decoding: a fixed number of drafted tokens per step, accepted
//     one after the other until the first refusal.
//   - LoRA: at most max_loras adapters in one step; a request that needs another
//     waits, and others pass it.
//   - Observations (metrics/stats.py): see report.go.
//
// # Simplifications
//
//   - The length of a step is the sum of measured times of its kernels and a fitted part
//     for the host (see Tables and Measured). Norms, activations and sampling are in that
//     part. One step begins when the last has ended, without the overlap of asynchronous
//     scheduling. Steps of the same work take the same time.
//   - In lockstep (Config.Lockstep) ranks exchange nothing; the slowest one decides how long
//     a step is, and a rank without requests takes as long as for one token.
//   - Front-end costs are fitted to a few published benchmarks (see DefaultFrontEnd).
//     Several API server processes count as one that is so many times as fast.
//   - Drawn prompts share only their beginning (a system prompt). In a closed loop of
//     conversations with blocks a turn finds the prompt and the answer before it, if its prompt
//     is long enough for both and begins with all full blocks of the prompt before it. The tokens
//     after these blocks are then taken to be equal. In an open loop it is not known which request
//     continues which, so only prompts are found. vLLM keeps all answers.
//   - An answer can be found from its end on, in vLLM from when each block is full. Answers that
//     are not as long as recorded, and those of sessions and of several choices, are not found.
//   - The choices of a request, and the beams of a search, share their prompt with each
//     other only. Beams do not share what they generated.
//   - A session gives up its blocks between two chunks, and finds them again unless they
//     were needed. Its client does not leave in between.
//   - The cache of images never evicts one.
//   - A block that two requests compute at the same time is cached once.
//   - A client that leaves after its first token is gone at the end of that step,
//     without the way through the front end.
//   - Remote KV is read whole before a request runs, at one rate, and a failed
//     transfer is computed here.
//   - Reduced KV blocks are taken from the free ones, as something else that
//     uses the memory would; a real server fixes their number at its start.
package engine
