package objective

import (
	"testing"
)

func BenchmarkAdd(b *testing.B) {
	tracker := newTracker(usual())
	at := epoch
	b.ReportAllocs()
	for b.Loop() {
		tracker.Add(at, at+15*second, requests(100, 1, 1))
		at += 15 * second
	}
}

func BenchmarkReadThreeWindows(b *testing.B) {
	tracker, at := lived(usual())
	b.ReportAllocs()
	for b.Loop() {
		tracker.Burn(0, at)
		tracker.Burn(1, at)
		tracker.Budget(at)
	}
}

func BenchmarkEncode(b *testing.B) {
	tracker, _ := lived(usual())
	b.ReportAllocs()
	for b.Loop() {
		tracker.Encode()
	}
}
