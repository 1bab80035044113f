package scenario

import (
	"slices"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
)

const week = 7 * 24 * time.Hour

func (s *Scenario) read(n *node) error {
	c := &s.Config
	c.Seed = 1
	seed := 1
	var requests source
	err := n.mapping(
		text("about", &s.About),
		field{"length", func(n *node) (err error) { s.Length, err = n.duration(time.Minute, week); return err }},
		integer("seed", &seed, 0, 1<<31),
		field{"hardware", s.readHardware},
		field{"profile", s.readProfile},
		integer("servers", &c.Targets, 1, 64),
		shares("server_shares", &c.Shares, func() int { return c.Targets }, "servers"),
		integer("engines", &c.Engines, 1, 64),
		shares("engine_shares", &c.Weights, func() int { return max(1, c.Engines) }, "engines"),
		boolean("lockstep", &c.Lockstep),
		integer("kv_cache_tokens", &c.KVCacheTokens, 16, 1<<22),
		integer("max_num_seqs", &c.MaxSeqs, 1, 1024),
		integer("max_model_len", &c.MaxModelLen, 16, 1<<20),
		integer("lora_slots", &c.MaxLoRAs, 1, 64),
		boolean("speculation", &c.SpecDecode),
		boolean("count_corrupted", &c.NaNCounter),
		boolean("hybrid_model", &c.Hybrid),
		boolean("quantized_model", &c.Quantized),
		boolean("latent_attention", &c.Latent),
		boolean("estimate_flops", &c.FlopsCounters),
		boolean("lost_handlers", &c.LostHandlers),
		field{"host_uptime", func(n *node) (err error) {
			c.HostUptime, err = n.duration(time.Second, 10*365*24*time.Hour)
			return err
		}},
		number("kv_cache_metrics_sample", &c.FollowBlocks, 0, 1),
		field{"transfer", s.readTransfer},
		field{"gpus", s.readGPUs},
		field{"scrape_interval", func(n *node) (err error) {
			s.Interval, err = n.duration(time.Second, min(time.Hour, s.horizon()))
			return err
		}},
		settings("processor", func(n *node, all map[string]any) {
			s.Processor, s.settings = all, n
		}),
		field{"workload", func(n *node) error { return s.readWorkload(n, &requests) }},
		field{"changes", s.readChanges},
		field{"faults", s.readFaults},
	)
	c.Seed, c.LoRA = uint64(seed), c.MaxLoRAs > 0
	if c.Hardware == "" && c.Measured == nil {
		c.Hardware = "8b-h100"
	}
	switch {
	case err != nil:
		return err
	case s.About == "":
		return n.errorf("about: missing; describe in a sentence what happens")
	case s.Length == 0:
		return n.errorf("length: missing; give the length of the story")
	case c.Workload == nil:
		return n.errorf("workload: missing; want at least its rate")
	case (c.Targets > 0) != (len(c.Shares) > 0):
		return n.errorf("server_shares: they go with servers, neither without the other")
	case c.Lockstep && c.Engines < 2:
		return n.errorf("lockstep: it goes with two or more engines")
	case c.LoRA != (c.Workload.AdapterShare > 0):
		return n.errorf("lora_slots: it goes with workload.adapter_share, neither without the other")
	}
	return requests.resolve(s)
}

func (s *Scenario) readTransfer(n *node) error {
	t := &s.Config.Transfer
	return n.mapping(
		number("share", &t.Share, 0, 1),
		span("latency", &t.Latency, 0, time.Minute),
		number("bytes_per_second", &t.BytesPerSecond, 1e6, 1e13),
	)
}

func (s *Scenario) readWorkload(n *node, requests *source) error {
	w := engine.Chat(0)
	s.Config.Workload = &w
	requests.at, requests.given = n, n.keys()
	return n.mapping(append(requests.fields(&w),
		field{"like", func(n *node) error {
			name, err := n.text()
			switch {
			case err != nil:
				return err
			case requests.replays() && (name == "code" || name == "chat"): // See source.notes.
			case name == "code":
				like := engine.Code(0)
				w.Prompt, w.Output = like.Prompt, like.Output
			case name != "chat":
				return n.errorf("unknown workload %q: want chat or code", name)
			}
			return nil
		}},
		number("rate", &w.Rate, 0, 1e5),
		number("arrival_variation", &w.CV, 0, 20),
		number("swing", &w.Swing, 0, 1),
		span("period", &w.Period, time.Second, week),
		number("burst_factor", &w.BurstFactor, 0, 1000),
		span("burst_every", &w.BurstEvery, time.Second, week),
		span("burst_length", &w.BurstSeconds, time.Second, week),
		number("prompt_median", &w.Prompt.Median, 1, 1e6),
		number("prompt_sigma", &w.Prompt.Sigma, 0, 3),
		number("output_median", &w.Output.Median, 1, 1e6),
		number("output_sigma", &w.Output.Sigma, 0, 3),
		number("prefix_share", &w.PrefixShare, 0, 1),
		integer("prefixes", &w.Prefixes, 0, 1e6),
		integer("prefix_tokens", &w.PrefixTokens, 0, 1e6),
		number("prefix_skew", &w.PrefixSkew, 1, 10),
		number("adapter_share", &w.AdapterShare, 0, 1),
		integer("adapters", &w.Adapters, 0, 63),
		span("timeout", &w.Timeout, 0, week),
		number("choices_share", &w.ChoicesShare, 0, 1),
		integer("choices", &w.Choices, 2, 64),
		number("beam_share", &w.BeamShare, 0, 1),
		integer("beams", &w.Beams, 1, 64),
		number("session_share", &w.SessionShare, 0, 1),
		integer("session_chunks", &w.Chunks, 2, 1000),
		span("session_pause", &w.ChunkPause, 0, time.Hour),
		number("image_share", &w.MediaShare, 0, 1),
		integer("images", &w.Media, 1, 1e6),
	)...)
}

func (s *Scenario) readFaults(n *node) error {
	return n.each(func(n *node) error {
		f := vllmsim.Fault{At: -1}
		err := n.mapping(
			span("at", &f.At, 0, s.horizon()),
			span("until", &f.Until, 0, s.horizon()),
			field{"kind", func(n *node) error {
				name, err := n.text()
				if f.Kind = vllmsim.FaultKind(name); err == nil && !slices.Contains(vllmsim.FaultKinds(), f.Kind) {
					err = n.errorf("unknown fault %q: want one of %v", name, vllmsim.FaultKinds())
				}
				return err
			}},
		)
		faults := &s.Config.Faults
		switch {
		case err != nil:
			return err
		case f.At < 0 || f.Until <= f.At:
			return n.errorf("until: want at and until, the later one second")
		case f.Kind == "":
			return n.errorf("kind: missing; want one of %v", vllmsim.FaultKinds())
		case len(*faults) > 0 && f.At < (*faults)[len(*faults)-1].Until:
			return n.errorf("at: before the end of the fault before")
		}
		*faults = append(*faults, f)
		return nil
	})
}

// horizon is the latest time at which something can happen. Length is read first.
func (s *Scenario) horizon() time.Duration {
	if s.Length > 0 {
		return s.Length
	}
	return week
}
