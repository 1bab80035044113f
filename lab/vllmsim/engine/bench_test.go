package engine

import "testing"

// BenchmarkVirtualHour is one hour of an 8B engine at moderate and at high
// load, with measured step times and with the formula. Real time is 3600 s; the quotient is how many times faster this is.
func BenchmarkVirtualHour(b *testing.B) {
	for _, c := range []struct {
		name  string
		model Model
		rate  float64
	}{
		{"moderate", Llama8B(), 5},
		{"high", Llama8B(), 20},
		{"formula, moderate", roofline(), 5},
		{"formula, high", roofline(), 20},
	} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				s, err := New(Config{Seed: 1, Model: c.model, Workload: Chat(c.rate), FrontEnd: DefaultFrontEnd()})
				if err != nil {
					b.Fatal(err)
				}
				s.AdvanceTo(3600)
				b.ReportMetric(float64(s.engines[0].step), "steps")
				b.ReportMetric(s.stats[0].InterToken.Sum/float64(s.stats[0].InterToken.Count)*1e3, "ms_ITL")
				b.ReportMetric(float64(s.stats[0].Running), "running")
			}
			b.ReportMetric(3600*float64(b.N)/b.Elapsed().Seconds(), "x_real_time")
		})
	}
}
