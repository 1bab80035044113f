// Package engine is a discrete-event model of a vLLM server with the V1 engine,
// whose truth is known: what each request went through, and what was done to
// the engine and when.
//
// A Server is one front end and one or more engines (data parallel ranks).
// Clients send requests; the front end works on them one after the other; a
// router gives each to an engine; the engine works in steps. Time is virtual:
// AdvanceTo moves it, and nothing here asks a clock. Equal Configs give equal
// runs, however many calls of AdvanceTo lead there.
//
// # What is modelled as vLLM does it
//
// The names in parentheses are vLLM's own, in vllm/v1.
//
//   - The scheduler (core/sched/scheduler.py, schedule): requests that run come
//     first, in their order, each with as many tokens as it lacks and the budget
//     has left (max_num_batched_tokens), so prompts are computed in chunks. Then
//     new ones are admitted, first come first served, up to max_num_seqs, and
//     none in a step that preempts. A prompt is admitted only if all of it fits
//     (scheduler_reserve_full_isl), though its blocks are taken chunk by chunk.
//   - Preemption: a request that finds no free block costs the newest one its
//     blocks. That one goes to the front of the queue with nothing computed.
//   - The KV cache (core/block_pool.py, core/kv_cache_manager.py): blocks, of
//     which the first is the null block and in nobody's use; only full blocks
//     can be found again, and never the whole prompt, since its last token must
//     be computed. Freed blocks stay findable until they are taken again, the
//     ones freed longest ago first and of one request the last ones first.
//   - What is observed of blocks that are followed (core/kv_cache_metrics.py): see
//     residency.go.
//   - Speculative decoding: a fixed number of drafted tokens per step, accepted
//     one after the other until the first refusal.
//   - LoRA: at most max_loras adapters in one step; who would need another waits
//     and lets others pass.
//   - Observations (metrics/stats.py): see report.go.
//
// # What is rough
//
//   - Step times come from a formula with efficiencies that nobody measured
//     here (see Model); one step begins when the last has ended, without the
//     overlap of asynchronous scheduling.
//   - Front-end costs are guesses of the right size. Several API server
//     processes count as one that is so many times as fast.
//   - Prompts share only their beginning (a system prompt); there are no
//     conversations whose next turn finds the last one.
//   - A block that two requests compute at the same time is findable once.
//   - A client that leaves after its first token is gone at the end of that step,
//     without the way through the front end.
//   - Remote KV is read whole before a request runs, at one rate, and a failed
//     transfer is computed here.
//   - Reduced KV blocks are taken from the free ones, as something else that
//     uses the memory would; a real server fixes their number at its start.
package engine
