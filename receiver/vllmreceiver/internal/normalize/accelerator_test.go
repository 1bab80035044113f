package normalize

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/exposition"
)

// describeAll is describe for the plan of an exporter: one line for each point, after the
// pod of its resource.
func describeAll(plan *Plan, snapshot *exposition.Snapshot) []string {
	var lines []string
	add := func(owner string, p *Plan) {
		for _, m := range p.Metrics {
			for i := range m.Points {
				point := &m.Points[i]
				value := point.Constant
				if point.Convert != nil {
					value = 0
					for _, part := range point.Parts {
						value += snapshot.Values[part.Value]
					}
					value = point.Convert.Of(value)
				}
				lines = append(lines, fmt.Sprintf("%s: %s %s %s %s = %v", owner, m.Name, m.Kind, m.Unit, shortText(point.Attributes), value))
			}
		}
	}
	add("-", plan)
	for _, w := range plan.Workloads {
		add(label(w.Resource, "k8s.namespace.name")+"/"+label(w.Resource, "k8s.pod.name")+"/"+label(w.Resource, "k8s.container.name"), w.Plan)
	}
	return lines
}

// shortText writes the attributes without those that are the same on all points.
func shortText(labels []exposition.Label) string {
	var parts []string
	for _, l := range labels {
		switch l.Name {
		case "hw.type", "hw.vendor", "hw.model":
		default:
			parts = append(parts, l.Name+"="+l.Value)
		}
	}
	return "{" + strings.Join(parts, ",") + "}"
}

func allOf(t *testing.T, body string, options Options) []string {
	t.Helper()
	snapshot := snapshotOf(body)
	plan := Make(snapshot.Layout, options)
	checkPlan(t, snapshot.Layout, &options, plan)
	return describeAll(plan, snapshot)
}

// without returns the lines that do not have a text.
func without(lines []string, text string) []string {
	var out []string
	for _, line := range lines {
		if !strings.Contains(line, text) {
			out = append(out, line)
		}
	}
	return out
}

// only returns the lines that have a text.
func only(lines []string, text string) []string {
	var out []string
	for _, line := range lines {
		if strings.Contains(line, text) {
			out = append(out, line)
		}
	}
	return out
}

const used = `gpu="0",UUID="GPU-a",device="nvidia0",modelName="H100",hostname="n1",container="c",namespace="ns",pod="p"`

func TestADeviceIsInTheResourceOfItsOnlyWorkload(t *testing.T) {
	body := "# TYPE DCGM_FI_DEV_POWER_USAGE gauge\n" +
		"DCGM_FI_DEV_POWER_USAGE{" + used + "} 612.5\n" +
		`DCGM_FI_DEV_POWER_USAGE{gpu="1",UUID="GPU-b",device="nvidia1",modelName="H100",hostname="n1"} 71.25` + "\n"
	assert.ElementsMatch(t, []string{
		"ns/p/c: hw.power gauge W {hw.id=GPU-a,hw.name=gpu0} = 612.5",
		"ns/p/c: vllm.accelerator.workloads gauge {workload} {hw.id=GPU-a,hw.name=gpu0,vllm.accelerator.sharing=exclusive} = 1",
		"-: hw.power gauge W {hw.id=GPU-b,hw.name=gpu1} = 71.25",
		"-: vllm.accelerator.workloads gauge {workload} {hw.id=GPU-b,hw.name=gpu1,vllm.accelerator.sharing=none} = 0",
	}, allOf(t, body, Options{}))
}

// The exporter repeats the numbers of a device for each of its workloads.
func TestASharedDeviceIsOnceInTheResourceOfItsExporter(t *testing.T) {
	line := `DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{gpu="0",UUID="GPU-a",pod="%s",namespace="ns",container="c"} 5000` + "\n"
	body := "# TYPE DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION counter\n" + fmt.Sprintf(line, "p") + fmt.Sprintf(line, "q")
	const shared = "vllm.accelerator.workloads gauge {workload} {hw.id=GPU-a,hw.name=gpu0,vllm.accelerator.sharing=shared} = 2"
	assert.ElementsMatch(t, []string{
		"-: hw.energy sum J {hw.id=GPU-a,hw.name=gpu0} = 5",
		"-: " + shared, "ns/p/c: " + shared, "ns/q/c: " + shared,
	}, allOf(t, body, Options{}))
}

// With virtual GPUs the exporter has the number of the device without a pod, and that of
// each pod's processes.
func TestTheNumberOfTheDeviceWinsOverThoseOfItsProcesses(t *testing.T) {
	body := "# TYPE DCGM_FI_DEV_FB_USED gauge\n" +
		`DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-a",pod="p",namespace="ns",container="c",pod_uid="u"} 10` + "\n" +
		`DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-a"} 30` + "\n" +
		`DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-a",pod="q",namespace="ns",container="c",pod_uid="v"} 20` + "\n"
	assert.Equal(t, []string{"-: hw.gpu.memory.usage gauge By {hw.id=GPU-a,hw.name=gpu0} = 3.145728e+07"},
		without(allOf(t, body, Options{}), "workloads"))
}

// The memory of a partition is its own; the power is that of the GPU, which is repeated for
// each partition.
func TestAPartitionHasItsOwnNumbersAndNotThoseOfTheGPU(t *testing.T) {
	line := func(family, id, pod, value string) string {
		return family + `{gpu="0",UUID="GPU-a",GPU_I_PROFILE="3g.40gb",GPU_I_ID="` + id + `"` + pod + `} ` + value + "\n"
	}
	p := `,pod="p",namespace="ns",container="c"`
	body := line("DCGM_FI_DEV_POWER_USAGE", "1", p, "300") + line("DCGM_FI_DEV_POWER_USAGE", "2", "", "300") +
		line("DCGM_FI_DEV_FB_USED", "1", p, "100") + line("DCGM_FI_DEV_FB_USED", "2", "", "200") +
		line("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "1", p, "0.25")
	const (
		first  = "hw.id=GPU-a/1,hw.name=gpu0,hw.parent=GPU-a,vllm.accelerator.partition_profile=3g.40gb"
		second = "hw.id=GPU-a/2,hw.name=gpu0,hw.parent=GPU-a,vllm.accelerator.partition_profile=3g.40gb"
		marker = "vllm.accelerator.workloads gauge {workload} "
	)
	assert.ElementsMatch(t, []string{
		"-: hw.power gauge W {hw.id=GPU-a,hw.name=gpu0} = 300",
		"ns/p/c: hw.gpu.memory.usage gauge By {" + first + "} = 1.048576e+08",
		"-: hw.gpu.memory.usage gauge By {" + second + "} = 2.097152e+08",
		"ns/p/c: vllm.accelerator.activity gauge 1 {component=tensor," + first + "} = 0.25",
		"-: " + marker + "{hw.id=GPU-a,hw.name=gpu0,vllm.accelerator.sharing=partitioned} = 1",
		"ns/p/c: " + marker + "{" + first + ",vllm.accelerator.sharing=partition} = 1",
		"-: " + marker + "{" + second + ",vllm.accelerator.sharing=none} = 0",
	}, allOf(t, body, Options{}))
}

// The partitions of AMD have UUIDs of their own and one serial number. Only the first has
// what belongs to the whole GPU; the others report 0.
func TestPartitionsOfAMD(t *testing.T) {
	line := func(family, partition, value string) string {
		return "# TYPE amd_" + family + " gauge\namd_" + family + `{gpu_id="` + partition + `",gpu_uuid="u` + partition +
			`",serial_number="S",gpu_partition_id="` + partition + `",gpu_compute_partition_type="cpx",pod="",namespace="",container=""} ` + value + "\n"
	}
	body := line("gpu_power_usage", "0", "500") + line("gpu_power_usage", "1", "0") +
		line("gpu_used_vram", "0", "1") + line("gpu_used_vram", "1", "2")
	assert.ElementsMatch(t, []string{
		"-: hw.power gauge W {hw.id=S,hw.name=gpu0} = 500",
		"-: hw.gpu.memory.usage gauge By {hw.id=S/0,hw.name=gpu0,hw.parent=S,vllm.accelerator.partition_profile=cpx} = 1.048576e+06",
		"-: hw.gpu.memory.usage gauge By {hw.id=S/1,hw.name=gpu1,hw.parent=S,vllm.accelerator.partition_profile=cpx} = 2.097152e+06",
	}, without(allOf(t, body, Options{}), "workloads"))
}

// A GPU in mode spx is whole, although the label with the partition is there.
func TestAWholeGPUOfAMD(t *testing.T) {
	for labels, id := range map[string]string{
		`gpu_uuid="U",serial_number="S"`: "U",
		`serial_number="S"`:              "S",
		`serial_number=""`:               "gpu3",
	} {
		body := `gpu_energy_consumed{gpu_id="3",gpu_partition_id="0",gpu_compute_partition_type="spx",` + labels + `} 7000000` + "\n"
		assert.Equal(t, []string{"-: hw.energy sum J {hw.id=" + id + ",hw.name=gpu3} = 7"},
			without(allOf(t, body, Options{}), "workloads"))
	}
}

func TestTheSpellingsOfTheWorkload(t *testing.T) {
	for labels, owner := range map[string]string{
		`UUID="GPU-a",pod="p",namespace="ns",container="c"`:                    "ns/p/c",
		`uuid="GPU-a",pod_name="p",pod_namespace="ns",container_name="c"`:      "ns/p/c",
		`gpu_uuid="GPU-a",pod="p",namespace="ns",container="c",model_name="M"`: "ns/p/c",
		`UUID="GPU-a",pod="",namespace="",container=""`:                        "-",
		`UUID="GPU-a",job="j",instance="i",pod="exporter",namespace="gpu"`:     "-",
		`UUID="GPU-a",job="batch-7",pod="p",namespace="ns",container="c"`:      "ns/p/c", // Prometheus adds both labels.
		`UUID="GPU-a",pod="exporter",namespace="gpu",container="e",` +
			`exported_pod="p",exported_namespace="ns",exported_container="c"`: "ns/p/c",
	} {
		lines := allOf(t, `DCGM_FI_DEV_GPU_TEMP{`+labels+"} 60\n", Options{})
		assert.Equal(t, []string{owner + ": hw.temperature gauge Cel {hw.id=GPU-a,hw.sensor_location=gpu} = 60"}, without(lines, "workloads"), labels)
	}
}

// Each bit is a point, and the two names of the family are one metric.
func TestTheBitsOfTheReasons(t *testing.T) {
	for _, family := range []string{"DCGM_FI_DEV_CLOCK_THROTTLE_REASONS", "DCGM_FI_DEV_CLOCKS_EVENT_REASONS"} {
		lines := only(allOf(t, family+`{UUID="GPU-a"} 132`+"\n", Options{}), "throttle.active")
		assert.Len(t, lines, 9)
		assert.ElementsMatch(t, []string{
			"-: vllm.accelerator.throttle.active gauge {state} {hw.id=GPU-a,reason=power_cap} = 1",
			"-: vllm.accelerator.throttle.active gauge {state} {hw.id=GPU-a,reason=hw_power_brake} = 1",
		}, only(lines, "= 1"))
	}
}

func TestNumbersThatHaveNoBits(t *testing.T) {
	for _, value := range []string{"NaN", "-1", "+Inf", "1e300"} {
		assert.Len(t, only(allOf(t, `DCGM_FI_DEV_CLOCKS_EVENT_REASONS{UUID="GPU-a"} `+value+"\n", Options{}), "= 0"), 10, value)
	}
}

// A sliding count has the TYPE of a counter and is none.
func TestTheCatalogueDecidesTheKind(t *testing.T) {
	for _, kind := range []string{"gauge", "counter", "untyped"} {
		body := "# TYPE DCGM_EXP_XID_ERRORS_COUNT " + kind + "\n" +
			`DCGM_EXP_XID_ERRORS_COUNT{UUID="GPU-a",window_size_in_ms="300000",xid="79"} 2` + "\n" +
			"# TYPE DCGM_FI_DEV_PCIE_REPLAY_COUNTER " + kind + "\n" + `DCGM_FI_DEV_PCIE_REPLAY_COUNTER{UUID="GPU-a"} 3` + "\n"
		assert.ElementsMatch(t, []string{
			"-: vllm.accelerator.xid.recent gauge {error} {hw.id=GPU-a,window_size_in_ms=300000,xid=79} = 2",
			"-: vllm.accelerator.link.errors sum {error} {error.type=replay,hw.id=GPU-a,link=pcie} = 3",
		}, without(allOf(t, body, Options{}), "workloads"), kind)
	}
	body := "# TYPE DCGM_FI_DEV_POWER_USAGE histogram\n" + `DCGM_FI_DEV_POWER_USAGE_bucket{UUID="GPU-a",le="+Inf"} 1` + "\n" +
		`DCGM_FI_DEV_POWER_USAGE_count{UUID="GPU-a"} 1` + "\n" + `DCGM_FI_DEV_GPU_TEMP{UUID="GPU-a"} 60` + "\n"
	plan := planOf(body, Options{})
	assert.Equal(t, []string{"DCGM_FI_DEV_POWER_USAGE"}, plan.Conflicts)
	assert.Equal(t, 1, plan.Dropped[ReasonTypeConflict])
}

// Of two families of one metric the better one counts. The limit is a sum where the
// exporter does not have it.
func TestPreferredFamilies(t *testing.T) {
	parts := `DCGM_FI_DEV_FB_USED{UUID="GPU-a"} 70` + "\n" + `DCGM_FI_DEV_FB_FREE{UUID="GPU-a"} 9` + "\n"
	limit := func(body string) []string { return only(allOf(t, body, Options{}), "memory.limit") }
	const want = "-: hw.gpu.memory.limit gauge By {hw.id=GPU-a} = "
	assert.Equal(t, []string{want + fmt.Sprint(float64(79<<20))}, limit(parts))
	parts += `DCGM_FI_DEV_FB_RESERVED{UUID="GPU-a"} 1` + "\n"
	assert.Equal(t, []string{want + fmt.Sprint(float64(80<<20))}, limit(parts))
	assert.Equal(t, []string{want + fmt.Sprint(float64(81<<20))}, limit(parts+`DCGM_FI_DEV_FB_TOTAL{UUID="GPU-a"} 81`+"\n"))
	assert.Empty(t, limit(`DCGM_FI_DEV_FB_USED{UUID="GPU-a"} 70`+"\n"), "without the free memory there is no sum")

	ecc := `DCGM_FI_DEV_ECC_DBE_AGG_TOTAL{UUID="GPU-a"} 9` + "\n"
	errors := func(body string) []string { return only(allOf(t, body, Options{}), "hw.errors") }
	const uncorrected = "-: hw.errors sum {error} {error.type=uncorrected,hw.id=GPU-a} = "
	assert.Equal(t, []string{uncorrected + "9"}, errors(ecc))
	assert.Equal(t, []string{uncorrected + "2"}, errors(`DCGM_FI_DEV_ECC_DBE_VOL_TOTAL{UUID="GPU-a"} 2`+"\n"+ecc))
}

// The domains of AMD's clocks have two spellings.
func TestTheClocksOfAMD(t *testing.T) {
	clock := func(kind string) string {
		return `gpu_clock{gpu_id="0",serial_number="S",gpu_partition_id="0",gpu_compute_partition_type="spx",clock_index="2",clock_type="` + kind + `"} 132` + "\n"
	}
	for wire, domain := range map[string]string{
		"system": "compute", "GPU_CLOCK_TYPE_SYSTEM": "compute", "memory": "memory", "GPU_CLOCK_TYPE_MEMORY": "memory", "soc": "soc",
	} {
		assert.Equal(t, []string{"-: vllm.accelerator.clock.frequency gauge Hz {clock_domain=" + domain + ",clock_index=2,hw.id=S,hw.name=gpu0} = 1.32e+08"},
			without(allOf(t, clock(wire), Options{}), "workloads"), wire)
	}
}

// What is not of a GPU has no points.
func TestSwitchesAndCPUsAreNoGPUs(t *testing.T) {
	body := `DCGM_FI_DEV_NVSWITCH_TEMPERATURE_CURRENT{nvswitch="0",hostname="n"} 40` + "\n" +
		`DCGM_FI_DEV_CPU_POWER_UTIL_CURRENT{cpu="0",hostname="n"} 90` + "\n" +
		`DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="GPU-a",hostname="n"} 60` + "\n"
	plan := planOf(body, Options{})
	assert.Len(t, without(describeAll(plan, snapshotOf(body)), "workloads"), 1)
	assert.Equal(t, 2, plan.Dropped[ReasonUnsupported]+plan.Dropped[ReasonDisabled])
}

// A family that the catalogue does not have is off until it is switched on by its name.
func TestUnknownFamiliesOfAnExporter(t *testing.T) {
	body := `DCGM_FI_DEV_FAN_SPEED{gpu="0",UUID="GPU-a",hostname="n",pod="p",namespace="ns",fan="1"} 30` + "\n"
	plan := planOf(body, Options{})
	assert.Equal(t, 1, plan.Dropped[ReasonDisabled])
	assert.Empty(t, plan.Unknown, "they are many, and are not named in the log")
	assert.Equal(t, []string{"ns/p/: vllm.accelerator.dcgm.fi_dev_fan_speed gauge  {fan=1,hw.id=GPU-a,hw.name=gpu0} = 30"},
		without(allOf(t, body, Options{Enabled: map[string]bool{"vllm.accelerator.dcgm.fi_dev_fan_speed": true}}), "workloads"))
}

func TestDevicesAndWorkloadsAreLimited(t *testing.T) {
	var body strings.Builder
	for i := range 40 {
		fmt.Fprintf(&body, "DCGM_FI_DEV_GPU_TEMP{gpu=\"%d\",UUID=\"GPU-%d\"} 60\n", i, i)
		fmt.Fprintf(&body, "DCGM_FI_DEV_POWER_USAGE{gpu=\"0\",UUID=\"GPU-0\",pod=\"p%d\",namespace=\"ns\"} 60\n", i)
	}
	options := Options{MaxDevices: 10}
	lines := allOf(t, body.String(), options)
	assert.Len(t, only(lines, "hw.temperature"), 10)
	plan := planOf(body.String(), options)
	assert.Len(t, plan.Workloads, 10)
	assert.Equal(t, 60, plan.Dropped[ReasonDeviceLimit])
}

func TestWhichBodiesAreFromAnExporter(t *testing.T) {
	for body, want := range map[string]struct {
		kind     ServerKind
		exporter string
	}{
		`DCGM_FI_DEV_GPU_TEMP{UUID="GPU-a"} 1` + "\n":                               {KindAccelerator, "dcgm"},
		`gpu_health{gpu_id="0",gpu_partition_id="0"} 1` + "\n":                      {KindAccelerator, "amd"},
		`amd_gpu_health{gpu_id="0",gpu_partition_id="0"} 1` + "\n":                  {KindAccelerator, "amd"},
		`gpu_health{gpu="0"} 1` + "\n":                                              {KindServer, ""},
		"vllm:num_requests_running 1\n" + `DCGM_FI_DEV_GPU_TEMP{UUID="a"} 1` + "\n": {KindServer, ""},
	} {
		plan := planOf(body, Options{Prefixes: []string{"acme_"}})
		assert.Equal(t, want.kind, plan.Server, body)
		assert.Equal(t, want.exporter, label(plan.Resource, AttributeExporter), body)
	}
	acme := `acme_gpu_health{gpu_id="0",gpu_partition_id="0"} 1` + "\n"
	plan := planOf(acme, Options{Prefixes: []string{"acme_"}, Source: SourceAMD})
	assert.Equal(t, KindAccelerator, plan.Server, "with a prefix of its own only the configuration can say it")
	assert.Equal(t, "vllm.accelerator.healthy", plan.Metrics[0].Name)
	assert.Equal(t, KindAccelerator, planOf("other 1\n", Options{Source: SourceDCGM}).Server)
	assert.Equal(t, KindServer, planOf(`DCGM_FI_DEV_GPU_TEMP{UUID="a"} 1`+"\n", Options{Source: SourceVLLM}).Server)
}

// The start of the exporter is not that of the counts, which belong to the driver.
func TestTheExportersStartIsNotUsed(t *testing.T) {
	plan := planOf("process_start_time_seconds 1\n"+`DCGM_FI_DEV_GPU_TEMP{UUID="GPU-a"} 1`+"\n", Options{})
	assert.Equal(t, exposition.NoSlot, plan.ProcessStart)
}

// Attributes that all series agree on belong to the resource.
func TestTheHostAndTheDriver(t *testing.T) {
	one := `DCGM_FI_DEV_GPU_TEMP{UUID="GPU-a",Hostname="n1",DCGM_FI_DRIVER_VERSION="580.1"} 1` + "\n"
	plan := planOf(one, Options{})
	assert.Equal(t, "n1", label(plan.Resource, "host.name"))
	assert.Equal(t, "580.1", label(plan.Resource, "hw.driver_version"))
	plan = planOf(one+`DCGM_FI_DEV_GPU_TEMP{UUID="GPU-b",hostname="n2",DCGM_FI_DRIVER_VERSION="570.1"} 1`+"\n", Options{})
	assert.Empty(t, label(plan.Resource, "host.name"))
	assert.Empty(t, label(plan.Resource, "hw.driver_version"))
}

// The sum over all resources counts each GPU once, however many containers use it and
// however it is cut in partitions.
func TestASumOverAllResourcesCountsEachGPUOnce(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 1))
		var power, memory strings.Builder
		wantPower, wantMemory := 0.0, 0.0
		for g := range 1 + random.IntN(8) {
			watts := float64(100 + random.IntN(600))
			wantPower += watts
			line := func(b *strings.Builder, family, more string, value float64) {
				fmt.Fprintf(b, "%s{gpu=\"%d\",UUID=\"GPU-%d\",hostname=\"n\"%s} %v\n", family, g, g, more, value)
			}
			pod := func() string {
				return fmt.Sprintf(`,pod="p%d",namespace="n%d",container="c"`, random.IntN(4), random.IntN(2))
			}
			mib := float64(random.IntN(80000))
			switch random.IntN(4) {
			case 0: // Idle.
				wantMemory += mib
				line(&power, "DCGM_FI_DEV_POWER_USAGE", "", watts)
				line(&memory, "DCGM_FI_DEV_FB_USED", "", mib)
			case 1: // One pod.
				p := pod()
				wantMemory += mib
				line(&power, "DCGM_FI_DEV_POWER_USAGE", p, watts)
				line(&memory, "DCGM_FI_DEV_FB_USED", p, mib)
			case 2: // Several pods.
				wantMemory += mib
				for range 2 + random.IntN(3) {
					p := pod()
					line(&power, "DCGM_FI_DEV_POWER_USAGE", p, watts)
					line(&memory, "DCGM_FI_DEV_FB_USED", p, mib)
				}
			default: // Partitions.
				for i := range 1 + random.IntN(7) {
					more := fmt.Sprintf(`,GPU_I_ID="%d",GPU_I_PROFILE="1g.10gb"`, i)
					if random.IntN(2) == 0 {
						more += pod()
					}
					part := float64(random.IntN(10000))
					wantMemory += part
					line(&power, "DCGM_FI_DEV_POWER_USAGE", more, watts)
					line(&memory, "DCGM_FI_DEV_FB_USED", more, part)
				}
			}
		}
		snapshot := snapshotOf(power.String() + memory.String())
		options := Options{}
		plan := Make(snapshot.Layout, options)
		checkPlan(t, snapshot.Layout, &options, plan)
		total := map[string]float64{}
		plans := []*Plan{plan}
		for _, w := range plan.Workloads {
			plans = append(plans, w.Plan)
		}
		for _, p := range plans {
			for m, point := range p.All() {
				for _, part := range point.Parts {
					total[m.Name] += snapshot.Values[part.Value]
				}
			}
		}
		assert.Equal(t, wantPower, total["hw.power"], "seed %d", seed)
		assert.Equal(t, wantMemory, total["hw.gpu.memory.usage"], "seed %d", seed)
	}
}
