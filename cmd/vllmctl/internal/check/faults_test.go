package check_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/check"
)

// fault is one mistake that is injected into a healthy world.
type fault struct {
	name string
	// want are the codes of its findings. Codes of severity info are added to those that the
	// healthy server has.
	want []string
	// begin injects it, and returns a configuration to check.
	begin func(t world) string
}

// world is where a fault is injected. It ends with the test.
type world struct{ *testing.T }

// faults are all tables.
func faults() []fault {
	return slices.Concat(connectionFaults(), tlsFaults(), bodyFaults(), serverFaults(), metricFaults(), configurationFaults(), exporterFaults(), kubernetesFaults())
}

// alone are the faults that replace the DNS or the environment of the whole process.
var alone = map[string]bool{
	"name that does not resolve": true, "name with two addresses": true, "credentials over plain HTTP": true,
	"backend name that does not resolve": true, "Kubernetes outside of a cluster": true,
}

// usual are the infos of the healthy server.
var usual = []string{
	check.CodeDefects, check.CodeDerived, check.CodeHang, check.CodeMissingAge, check.CodeMissingFlag, check.CodeQuantile,
}

func TestAHealthyServerHasOnlyTheUsualInfos(t *testing.T) {
	report := checked(t, configuration(t, "endpoint: "+serve(t, healthy(t)), ""))
	assert.Empty(t, codesOf(report, check.Problem, check.Warning))
	assert.Subset(t, usual, codesOf(report, check.Info))
}

func TestEachFaultGivesExactlyItsCodes(t *testing.T) {
	for _, f := range faults() {
		t.Run(f.name, func(t *testing.T) {
			if !alone[f.name] {
				t.Parallel()
			}
			report := checked(t, f.begin(world{t}))
			serious, infos := []string{}, []string{}
			for _, code := range f.want {
				if severityOf(code) == check.Info {
					infos = append(infos, code)
				} else {
					serious = append(serious, code)
				}
			}
			slices.Sort(serious)
			assert.Equal(t, serious, codesOf(report, check.Problem, check.Warning), "%+v", report.Findings)
			got := codesOf(report, check.Info)
			for _, code := range infos {
				assert.Contains(t, got, code)
			}
			if slices.ContainsFunc(f.want, func(code string) bool { return severityOf(code) != check.Info }) {
				for _, code := range got {
					assert.Contains(t, append(infos, usual...), code, "an info that this fault does not explain")
				}
			}
			for _, finding := range all(report) {
				assert.NotEmpty(t, finding.What)
				assert.Regexp(t, `\.$`, finding.What, finding.Code)
				assert.NotRegexp(t, `\.\.$`, finding.What, finding.Code)
				assert.Contains(t, finding.Link, "#check-"+finding.Code)
			}
			want := 0
			if slices.ContainsFunc(f.want, func(code string) bool { return severityOf(code) == check.Problem }) {
				want = 1
			}
			assert.Equal(t, want, report.Status)
		})
	}
}

func severityOf(code string) string {
	for _, c := range check.Codes() {
		if c.Name == code {
			return c.Severity
		}
	}
	return ""
}

// Each code can be produced, and each code that is produced is in the table: the first
// because a fault wants it, the second because a finding takes its severity from the table.
func TestEachCodeOfTheTableHasAFault(t *testing.T) {
	wanted := slices.Clone(usual)
	for _, f := range faults() {
		for _, code := range f.want {
			require.NotEmpty(t, severityOf(code), "%s wants the code %s, which the table does not have", f.name, code)
			wanted = append(wanted, code)
		}
	}
	names := map[string]bool{}
	for _, c := range check.Codes() {
		assert.Contains(t, wanted, c.Name)
		assert.False(t, names[c.Name], "%s is there twice", c.Name)
		names[c.Name] = true
		assert.Regexp(t, `^[a-z]+(-[a-z]+)*$`, c.Name)
		assert.Contains(t, check.Categories(), c.Category)
		assert.Contains(t, []string{check.Problem, check.Warning, check.Info}, c.Severity)
		for _, text := range []string{c.Finds, c.Do} {
			assert.Regexp(t, `^[A-Z/c].*\.$`, text, c.Name)
		}
	}
}
