package catalog

// DefectID is the stable name of a defect, which is also its anchor in
// docs/what-vllm-gets-wrong.md.
type DefectID string

// Defect is a way in which vLLM's own metrics differ from what their names say.
// defects.yaml explains the fields, and has more for readers.
type Defect struct {
	ID    DefectID
	Title string
	// Metrics are names of the catalogue; "*" means all metrics of the server.
	Metrics []string
	// Since is the first version with the defect. Until is the first without it; empty
	// while it is not fixed.
	Since, Until string
	// Change is true where the metric changed its meaning at Since.
	Change bool
	// Setups are the names of the setups that the defect needs, all of them.
	Setups []string
	// Engines are the implementations with the defect: "python", "rust", "v0"; empty means
	// all.
	Engines []string
}

// Setup is a kind of deployment that a defect can be limited to.
type Setup struct {
	Name, Meaning string
	// Visible is how the data show it; empty where they do not.
	Visible string
}

// Defects returns all known defects in the order of the file.
func Defects() []Defect { return defects }

// Setups returns all setups in the order of the file.
func Setups() []Setup { return setups }

// Affects reports whether a server of a version can have the defect. An unknown version,
// such as "", counts as affected.
func (id DefectID) Affects(version string) bool {
	release, known := ParseRelease(version)
	for i := range defects {
		if d := &defects[i]; d.ID == id {
			return !known || release.Within(d.Since, d.Until)
		}
	}
	return false
}
