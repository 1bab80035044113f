package normalize

import (
	"slices"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/exposition"
)

// inventory has the GPUs of a body and the workloads that use them.
type inventory struct {
	exporter *catalog.Exporter
	// limit is the maximum number of devices, and of workloads; 0 means no limit.
	limit int
	// behind is true if the body went through a Prometheus.
	behind    bool
	devices   []device
	byID      map[string]int
	workloads []workload
	byName    map[[3]string]int
	// host and driver are what all series agree on.
	host, driver agreed
}

// agreed is a value that all series with one must have.
type agreed struct {
	value    string
	disagree bool
}

func (a *agreed) add(value string) {
	switch {
	case value == "":
	case a.value == "":
		a.value = value
	case a.value != value:
		a.disagree = true
	}
}

// one returns the value; empty if they do not agree.
func (a *agreed) one() string {
	if a.disagree {
		return ""
	}
	return a.value
}

// device is a GPU or a partition of one.
type device struct {
	id, name, model, profile string
	// parent is the index of the whole GPU, for a partition; else -1.
	parent int
	// first is true for a partition with the number 0: AMD's exporter reports what belongs
	// to the whole GPU with it.
	first bool
	// partitions is how many partitions the GPU is cut in, as far as they are seen.
	partitions int
	// users are the workloads that use it, or its partitions.
	users []int
	// owner is the workload whose resource has its points; -1 is the exporter's own.
	owner int
}

// workload is a container that uses devices.
type workload struct{ namespace, pod, container, uid string }

// key identifies a workload over scrapes. A pod that is created again under the same name
// is another one.
func (w *workload) key() string {
	return w.namespace + "\x00" + w.pod + "\x00" + w.container + "\x00" + w.uid
}

func (w *workload) resource() []exposition.Label {
	return withValues(
		exposition.Label{Name: "k8s.container.name", Value: w.container}, exposition.Label{Name: "k8s.namespace.name", Value: w.namespace},
		exposition.Label{Name: "k8s.pod.name", Value: w.pod}, exposition.Label{Name: "k8s.pod.uid", Value: w.uid},
	)
}

// withValues returns the labels that have a value.
func withValues(labels ...exposition.Label) []exposition.Label {
	return slices.DeleteFunc(labels, func(l exposition.Label) bool { return l.Value == "" })
}

// place is where a series belongs.
type place struct {
	// device is the index of its device, workload that of its workload; -1 without.
	device, workload int
}

// isBehindPrometheus reports whether the labels of a body were changed by a Prometheus,
// which puts the exporter's own pod in the place of the workload's.
func (b *builder) isBehindPrometheus() bool {
	for i := range b.layout.Families {
		for s := range b.layout.Families[i].Series {
			labels := b.layout.Families[i].Series[s].Labels
			if label(labels, "exported_pod") != "" || label(labels, "job") != "" && label(labels, "instance") != "" {
				return true
			}
		}
	}
	return false
}

// role returns the value of the label with a meaning; empty without.
func role(labels []exposition.Label, r catalog.Role) string {
	for _, name := range catalog.Accelerators.Labels[r] {
		if value := label(labels, name); value != "" {
			return value
		}
	}
	return ""
}

// ofWorkload is role for the labels of the workload.
func (v *inventory) ofWorkload(labels []exposition.Label, r catalog.Role) string {
	if v.behind {
		return label(labels, catalog.Accelerators.Labels[r][0])
	}
	return role(labels, r)
}

// locate finds the device and the workload of a series.
func (v *inventory) locate(labels []exposition.Label) (place, Reason) {
	none := place{device: -1, workload: -1}
	v.host.add(role(labels, catalog.RoleHost))
	v.driver.add(role(labels, catalog.RoleDriver))
	d, ok := v.read(labels)
	if !ok {
		// A switch or a CPU.
		return none, ReasonUnsupported
	}
	at := place{workload: -1}
	if at.device, ok = v.deviceIndex(d); !ok {
		return none, ReasonDeviceLimit
	}
	if at.workload, ok = v.workloadIndex(labels); !ok {
		return none, ReasonDeviceLimit
	}
	if at.workload >= 0 {
		v.use(at.device, at.workload)
	}
	return at, ReasonNone
}

// use records that a workload uses a device, and so the whole GPU of a partition.
func (v *inventory) use(i, workload int) {
	for i >= 0 {
		d := &v.devices[i]
		if !slices.Contains(d.users, workload) {
			d.users = append(d.users, workload)
		}
		i = d.parent
	}
}

// reading is what the labels of a series say about its device.
type reading struct{ id, parent, index, model, profile, partition string }

// read returns the device of a series. It returns false for a series that is not about a
// GPU.
func (v *inventory) read(labels []exposition.Label) (reading, bool) {
	r := reading{
		id: role(labels, catalog.RoleID), index: role(labels, catalog.RoleIndex), model: role(labels, catalog.RoleModel),
		partition: role(labels, catalog.RolePartition), profile: role(labels, catalog.RoleProfile),
	}
	serial := role(labels, catalog.RoleSerial)
	if v.exporter.Label != "" && !isCut(r.profile) {
		r.partition = ""
	}
	whole := r.id
	switch {
	case r.partition != "" && serial != "":
		// The partitions of a GPU of AMD have different UUIDs and one serial number.
		whole = serial
	case r.id == "" && serial != "":
		whole = serial
	case r.id == "" && r.index != "":
		whole = "gpu" + r.index
	}
	if whole == "" {
		return r, false
	}
	r.id = whole
	if r.partition == "" {
		r.profile = ""
	} else {
		r.parent, r.id = whole, whole+"/"+r.partition
	}
	return r, true
}

// isCut reports whether a GPU of AMD in this mode is cut in partitions.
func isCut(mode string) bool {
	switch strings.ToLower(mode) {
	case "", "spx", "na", "n/a", "none":
		return false
	}
	return true
}

// deviceIndex returns the index of a device, which is added if it is new.
func (v *inventory) deviceIndex(r reading) (int, bool) {
	if i, known := v.byID[r.id]; known {
		if v.devices[i].model == "" {
			v.devices[i].model = r.model
		}
		return i, true
	}
	need, parent := 1, -1
	if r.parent != "" {
		if i, known := v.byID[r.parent]; known {
			parent = i
		} else {
			need = 2
		}
	}
	if v.limit > 0 && len(v.devices)+need > v.limit {
		return -1, false
	}
	name := ""
	if r.index != "" {
		name = "gpu" + r.index
	}
	if need == 2 {
		parent = v.insert(device{id: r.parent, name: name, model: r.model, parent: -1})
	}
	if parent >= 0 {
		v.devices[parent].partitions++
	}
	return v.insert(device{
		id: r.id, name: name, model: r.model, profile: r.profile, parent: parent, first: r.partition == "0",
	}), true
}

func (v *inventory) insert(d device) int {
	v.byID[d.id] = len(v.devices)
	v.devices = append(v.devices, d)
	return len(v.devices) - 1
}

// workloadIndex returns the index of the workload of a series; -1 without one.
func (v *inventory) workloadIndex(labels []exposition.Label) (int, bool) {
	pod := v.ofWorkload(labels, catalog.RolePod)
	if pod == "" {
		return -1, true
	}
	name := [3]string{v.ofWorkload(labels, catalog.RoleNamespace), pod, v.ofWorkload(labels, catalog.RoleContainer)}
	i, known := v.byName[name]
	if !known {
		if v.limit > 0 && len(v.workloads) >= v.limit {
			return -1, false
		}
		i = len(v.workloads)
		v.byName[name] = i
		v.workloads = append(v.workloads, workload{namespace: name[0], pod: name[1], container: name[2]})
	}
	if w := &v.workloads[i]; w.uid == "" {
		// Some families have the UID and others do not.
		w.uid = role(labels, catalog.RoleUID)
	}
	return i, true
}

// assign decides which resource has the points of each device. That of a workload has
// those that it uses alone, so that no number is there twice.
func (v *inventory) assign() {
	for i := range v.devices {
		d := &v.devices[i]
		d.owner = -1
		if len(d.users) == 1 && d.partitions == 0 {
			d.owner = d.users[0]
		}
	}
}

// sharers are the workloads of a device that is not in their resource.
func (d *device) sharers() []int {
	if d.owner >= 0 || d.partitions > 0 {
		return nil
	}
	return d.users
}

// use returns by how many workloads a device is used, and how.
func (d *device) use() (float64, string) {
	sharing := "exclusive"
	switch {
	case d.partitions > 0:
		sharing = "partitioned"
	case len(d.users) > 1:
		sharing = "shared"
	case len(d.users) == 0:
		sharing = "none"
	case d.parent >= 0:
		sharing = "partition"
	}
	return float64(len(d.users)), sharing
}

// deviceOf returns the device that a point from a series is about: the whole GPU, if the
// metric has no value for a partition. whole is true if the series is the device's own and
// not one of several copies.
func (v *inventory) deviceOf(at place, partitions bool) (index int, whole, ok bool) {
	if at.device < 0 {
		return -1, false, false
	}
	d := &v.devices[at.device]
	if d.parent < 0 || partitions {
		return at.device, at.workload < 0, true
	}
	// The other partitions of AMD have no number of the whole GPU, or 0.
	if v.exporter.Label != "" && !d.first {
		return -1, false, false
	}
	return d.parent, false, true
}

// shared returns the attributes of all resources of an exporter.
func (v *inventory) shared() []exposition.Label {
	return withValues(exposition.Label{Name: "hw.driver_version", Value: v.driver.one()}, exposition.Label{Name: "host.name", Value: v.host.one()})
}
