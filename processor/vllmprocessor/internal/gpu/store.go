package gpu

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// mostDevices bounds the GPUs whose readings are kept, of workloads of servers here. Each
	// takes at most 13 KiB.
	mostDevices = 10_000
	// mostOfServer bounds those of one server, whoever reports them, and mostWorkloads the
	// resources that report GPUs of one server: each container has one for each exporter, and
	// an exporter that restarts can have another address. So what is sent for one server takes
	// no room of the others.
	mostOfServer  = 128
	mostWorkloads = 16
	// mostExporters bounds the exporters that are known to see workloads.
	mostExporters = 10_000
	// mostName bounds the names that are kept of a GPU, in bytes.
	mostName = 256
	// lead is how far readings may be ahead of our clock.
	lead = 30 * time.Second
	// leastApart is the least of Store.apart: DCGM reads GPUs every 30 s, and exporters are
	// scraped every minute or more often.
	leastApart = 90 * time.Second
)

// Outcome is what became of a batch.
type Outcome uint8

// The outcomes.
const (
	// Used means: it belongs to a server here.
	Used Outcome = iota
	// Unmatched means: it belongs to no server here.
	Unmatched
	// SharedDevice means: several workloads use the GPU, or it is cut in partitions.
	SharedDevice
	// SeveralServers means: the exporter knows no workload, and several servers run on its host.
	SeveralServers
	// DeviceLimit means: there are more GPUs than are kept.
	DeviceLimit
	// FutureTime means: the reading is ahead of our clock.
	FutureTime
	// LateTime means: the reading is older than what is kept.
	LateTime

	// NumOutcomes is the number of outcomes, for arrays over them.
	NumOutcomes
)

// String is the outcome as the processor's own telemetry spells it.
func (o Outcome) String() string {
	return [NumOutcomes]string{"used", "unmatched", "shared", "several_servers", "device_limit", "future", "late"}[o]
}

// Report counts the readings by their outcome.
type Report [NumOutcomes]int

// Store keeps the GPUs of the servers of a processor. It is safe for concurrent use.
type Store struct {
	window int64
	// apart is how far apart two readings may be without a gap between them.
	apart int64
	// seen is true once there was a reading. Before that nothing costs anything.
	seen atomic.Bool
	// number is that of the GPUs that are kept.
	number atomic.Int64

	mu      sync.Mutex
	servers map[string]*server
	at      map[place][]*server
	// workloads are those of servers here, by their key.
	workloads map[string]*workload
	// attributed is when an exporter's report of a workload last arrived, which means that the
	// GPUs without one are idle.
	attributed map[string]int64
	expired    int64
}

// server is a server of the processor.
type server struct {
	key string
	Owner
	// gpus are the workloads that its GPUs belong to.
	gpus []*workload
}

// workload is the GPUs of a batch.
type workload struct {
	Workload
	devices []*Device
	// newest is the time of its newest batch, arrived when it arrived; shared is the time of
	// the newest reading of a GPU that others use as well or that is a partition.
	newest, arrived, shared int64
	gone                    bool
}

// NewStore returns an empty store for windows of a length.
func NewStore(window time.Duration) *Store {
	return &Store{
		window: int64(window), apart: int64(max(window*3/2, leastApart)),
		servers: map[string]*server{}, at: map[place][]*server{},
		workloads: map[string]*workload{}, attributed: map[string]int64{},
	}
}

// Seen reports whether there has ever been a reading.
func (s *Store) Seen() bool { return s.seen.Load() }

// Devices is the number of GPUs that are kept.
func (s *Store) Devices() int { return int(s.number.Load()) }

// Observe takes the batches of a request that are not matched yet, and sets matched for those
// that belong to a server here. now is the time in Unix nanoseconds.
func (s *Store) Observe(batches []Batch, now int64, matched []bool) (report Report) {
	if len(batches) == 0 {
		return report
	}
	s.seen.Store(true)
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range batches {
		b := &batches[i]
		_, known := s.attributed[b.Exporter]
		if b.inPod() && len(b.Readings) > 0 && (known || len(s.attributed) < mostExporters) {
			s.attributed[b.Exporter] = now
		}
	}
	for i := range batches {
		b := &batches[i]
		if matched[i] {
			continue
		}
		servers, outcome := s.match(&b.Workload, b.Time)
		if matched[i] = outcome == Used; matched[i] {
			outcome = s.take(b, servers, now, &report)
		}
		if outcome != Used {
			report[outcome] += len(b.Readings)
		}
	}
	return report
}

func (s *Store) take(b *Batch, servers []*server, now int64, report *Report) Outcome {
	switch {
	case len(b.Readings) == 0:
		return Used
	case IsAhead(b.Time, now):
		return FutureTime
	}
	w := s.workloads[b.Key]
	if w == nil {
		for _, to := range servers {
			if len(to.gpus) >= mostWorkloads {
				return DeviceLimit
			}
		}
		w = &workload{Workload: b.Workload}
		s.workloads[b.Key] = w
	}
	w.newest, w.arrived = max(w.newest, b.Time), now
	for _, to := range servers {
		if !slices.Contains(to.gpus, w) {
			to.gpus = append(to.gpus, w)
		}
	}
	for i := range b.Readings {
		report[s.place(w, servers, b.Time, &b.Readings[i])]++
	}
	return Used
}

func (s *Store) place(w *workload, servers []*server, at int64, r *Reading) Outcome {
	if r.Sharing == Shared || r.Sharing == Partitioned {
		w.shared = max(w.shared, at)
		return SharedDevice
	}
	i := slices.IndexFunc(w.devices, func(d *Device) bool { return d.ID == r.Device })
	if i < 0 {
		if s.number.Load() >= mostDevices || mostGPUs(servers) >= mostOfServer || len(r.Device)+len(r.Name) > mostName {
			return DeviceLimit
		}
		i = len(w.devices)
		w.devices = append(w.devices, &Device{ID: r.Device, Name: r.Name})
		s.number.Add(1)
	}
	if !w.devices[i].put(at, r, s.window) {
		return LateTime
	}
	return Used
}

// IsAhead reports whether the timestamp of a reading is in the future.
func IsAhead(at, now int64) bool {
	return at > now+int64(lead) || at < 0 // Times beyond the year 2262 are negative here.
}

// mostGPUs is how many GPUs are kept of the server that has most.
func mostGPUs(servers []*server) (most int) {
	for _, one := range servers {
		n := 0
		for _, w := range one.gpus {
			n += len(w.devices)
		}
		most = max(most, n)
	}
	return most
}

// Expire forgets GPUs that were not read for as long as readings are kept. It looks a few
// times within that time.
func (s *Store) Expire(now int64) {
	if !s.Seen() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := keptWindows * s.window
	if now-s.expired < kept/8 && now >= s.expired {
		return
	}
	s.expired = now
	for _, w := range s.workloads {
		before := len(w.devices)
		w.devices = slices.DeleteFunc(w.devices, func(d *Device) bool { return now-d.NewestReading() > kept })
		s.number.Add(int64(len(w.devices) - before))
		if now-w.arrived > kept {
			s.drop(w)
		}
	}
	for exporter, at := range s.attributed {
		if now-at > kept {
			delete(s.attributed, exporter)
		}
	}
	for _, one := range s.servers {
		one.gpus = slices.DeleteFunc(one.gpus, func(w *workload) bool { return w.gone })
	}
}
