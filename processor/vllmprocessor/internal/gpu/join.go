package gpu

import "slices"

// Place says where a server runs. It costs little where that has not changed.
func (s *Store) Place(key string, owner Owner) {
	if !s.Seen() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.servers[key]
	if before != nil && before.Owner == owner {
		return
	}
	if before != nil {
		s.remove(before)
	}
	one := &server{key: key, Owner: owner}
	s.servers[key] = one
	for _, at := range one.places() {
		s.at[at] = append(s.at[at], one)
	}
}

// Remove forgets a server.
func (s *Store) Remove(key string) {
	if !s.Seen() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if one := s.servers[key]; one != nil {
		s.remove(one)
	}
}

func (s *Store) remove(one *server) {
	delete(s.servers, one.key)
	for _, at := range one.places() {
		rest := slices.DeleteFunc(s.at[at], func(other *server) bool { return other == one })
		if s.at[at] = rest; len(rest) == 0 {
			delete(s.at, at)
		}
	}
	for _, w := range one.gpus {
		if servers, _ := s.match(&w.Workload, w.newest); len(servers) == 0 {
			s.drop(w)
		}
	}
}

func (s *Store) drop(w *workload) {
	s.number.Add(int64(-len(w.devices)))
	w.devices, w.gone = nil, true
	delete(s.workloads, w.Key)
}

// place is where a server is found: by the UID of its pod, by the name and namespace of its pod, or
// by its host.
type place struct{ uid, namespace, pod, host string }

func (o *Owner) places() (all []place) {
	if o.PodUID != "" {
		all = append(all, place{uid: o.PodUID})
	}
	if o.Pod != "" {
		all = append(all, place{namespace: o.Namespace, pod: o.Pod})
	}
	for _, host := range o.hosts() {
		all = append(all, place{host: host})
	}
	return all
}

// hosts are the names of the machine, each once.
func (o *Owner) hosts() (all []string) {
	if o.Host != "" {
		all = append(all, o.Host)
	}
	if o.Node != "" && o.Node != o.Host {
		all = append(all, o.Node)
	}
	return all
}

// match returns the servers that GPUs belong to: those of the pod by its UID, else by its
// namespace and name, and of these the ones in the container, where both sides know it. GPUs
// without a workload belong to the only server of their host, if their exporter has reported
// no workload: otherwise they are idle, or belong to a process outside of pods.
func (s *Store) match(w *Workload, at int64) ([]*server, Outcome) {
	var found []*server
	switch {
	case w.inPod():
		for _, one := range s.at[place{uid: w.PodUID}] {
			if fits(w, one) {
				found = append(found, one)
			}
		}
		if len(found) > 0 || w.Pod == "" {
			break
		}
		for _, one := range s.at[place{namespace: w.Namespace, pod: w.Pod}] {
			// The pod of a StatefulSet has the same name and another UID after a restart.
			if (w.PodUID == "" || one.PodUID == "" || w.PodUID == one.PodUID) && fits(w, one) {
				found = append(found, one)
			}
		}
	default:
		for _, host := range w.hosts() {
			for _, one := range s.at[place{host: host}] {
				if slices.Contains(found, one) || !sameCluster(w, one) {
					continue
				}
				if found = append(found, one); len(found) > 1 {
					return nil, SeveralServers
				}
			}
		}
		attributed, does := s.attributed[w.Exporter]
		if does && at-attributed <= keptWindows*s.window || !does && len(s.attributed) >= mostExporters {
			// With too many exporters it is not known whether this one reports workloads.
			return nil, Unmatched
		}
	}
	if len(found) == 0 {
		return nil, Unmatched
	}
	return found, Used
}

func sameCluster(w *Workload, one *server) bool {
	return w.Cluster == "" || one.Cluster == "" || w.Cluster == one.Cluster
}

func fits(w *Workload, one *server) bool {
	return sameCluster(w, one) && (w.Container == "" || one.Container == "" || w.Container == one.Container)
}

// Joined is the GPUs of a server.
type Joined struct {
	// Devices are the GPUs, those that are no longer read as well. They are valid during
	// the call only.
	Devices []*Device
	// Servers is how many servers share them because they run in one pod.
	Servers int
	// Ambiguous is true where a GPU of the pod is shared with other workloads or is a
	// partition, where several servers run on the host, or where several containers of the pod
	// have GPUs and it is not known which of them is the server's.
	Ambiguous bool
	// Host is true where the GPUs are those of the host of the server, and not of its pod.
	Host bool
	// Apart is how far apart two readings may be without a gap, in nanoseconds.
	Apart int64
}

// Of calls visit with the GPUs of a server. It does not where there are none.
func (s *Store) Of(key string, visit func(*Joined)) {
	if !s.Seen() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if joined, has := s.joined(s.servers[key]); has {
		visit(&joined)
	}
}

func (s *Store) joined(one *server) (j Joined, has bool) {
	if one == nil || len(one.gpus) == 0 {
		return j, false
	}
	j.Apart = s.apart
	unclear := s.inSeveralContainers(one)
	for _, w := range one.gpus {
		if w.gone {
			continue
		}
		if unclear && w.Container != "" {
			j.Ambiguous = true
			continue
		}
		servers, outcome := s.match(&w.Workload, w.newest)
		if outcome != Used {
			// Another server has appeared on the host. Or the exporter reports workloads now,
			// and these GPUs are idle.
			j.Ambiguous = j.Ambiguous || outcome == SeveralServers
			continue
		}
		j.Servers = max(j.Servers, len(servers))
		j.Host = j.Host || !w.inPod()
		j.Ambiguous = j.Ambiguous || w.shared != 0 && w.newest-w.shared <= s.apart
		for _, d := range w.devices {
			j.add(d)
		}
	}
	return j, len(j.Devices) > 0 || j.Ambiguous
}

// inSeveralContainers reports whether several containers of the pod have GPUs, and it is not
// known in which of them the server runs.
func (s *Store) inSeveralContainers(one *server) bool {
	if one.Container != "" {
		return false
	}
	name, newest := "", int64(0)
	for _, w := range one.gpus {
		if !w.gone && w.Container != "" && w.newest > newest {
			name, newest = w.Container, w.newest
		}
	}
	return slices.ContainsFunc(one.gpus, func(w *workload) bool {
		return !w.gone && w.Container != "" && w.Container != name && newest-w.newest <= s.apart
	})
}

// add adds a GPU once: of one that two exporters report, or one under two addresses, the newer.
func (j *Joined) add(d *Device) {
	i := slices.IndexFunc(j.Devices, func(other *Device) bool { return other.ID == d.ID })
	switch {
	case i < 0:
		j.Devices = append(j.Devices, d)
	case d.NewestReading() > j.Devices[i].NewestReading():
		j.Devices[i] = d
	}
}
