// Package traffic has the requests that simulated servers get: it reads and writes traces,
// and generates traffic whose statistics are fitted to published ones.
//
// A trace is a CSV file, gzip or plain. Its header names the columns, in any order; unknown
// ones are ignored. An open loop has
//
//	arrival_s      seconds since the beginning, rising
//	prompt_tokens  length of the prompt
//	output_tokens  length of the answer
//	client         a number for each tenant (optional)
//	prefix_blocks  the blocks of the prompt: numbers and runs "a-b", separated by spaces
//	               (optional). Equal numbers at equal places mean that everything up to the
//	               end of that block is equal
//
// A closed loop has no arrivals, but conversation, think_s (the pause after the last answer),
// prompt_tokens and output_tokens, and optionally seq, shared_prefix_tokens (the part of the
// prompt that all conversations have in common) and prefix_blocks.
package traffic
