package catalog

// Exported is one family of a GPU exporter that becomes a metric.
type Exported struct {
	// Exporter is the name of the exporter, "dcgm" for example.
	Exporter string
	// Family is the name in the text format without a prefix of the deployment.
	Family string
	// Scale converts the number to the metric's unit; 0 means that it is in that unit.
	Scale float64
	// Bit, if not 0, is the bit of the number that the metric shows: 1 if it is set, else 0.
	Bit uint64
	// Set are attributes with a constant value.
	Set map[string]string
	// Labels maps labels to the attributes that they become. Other labels are dropped.
	Labels map[string]string
	// Plus are families whose numbers are added. A device without the first one has no
	// point.
	Plus []string
	// Off is true if the exporter does not export the family by default.
	Off bool
}

// Role is what a label of a GPU exporter means.
type Role string

// The roles of labels.
const (
	RoleID        Role = "id"
	RoleSerial    Role = "serial"
	RoleIndex     Role = "index"
	RoleModel     Role = "model"
	RolePartition Role = "partition"
	RoleProfile   Role = "profile"
	RoleHost      Role = "host"
	RoleDriver    Role = "driver"
	RoleNamespace Role = "namespace"
	RolePod       Role = "pod"
	RoleContainer Role = "container"
	RoleUID       Role = "uid"
)

// AcceleratorRules are the rules for the exporters of GPUs.
type AcceleratorRules struct {
	Exporters []Exporter
	// Labels are the names that the labels of each role have, the preferred one first.
	Labels map[Role][]string
	// Values are values of labels that become other values of an attribute, by the
	// attribute and the lower-case value.
	Values map[string]map[string]string
}

// Exporter is a program that exports metrics of GPUs.
type Exporter struct {
	// Name is the value of the setting source and of the resource attribute
	// vllm.accelerator.exporter.
	Name string
	// Vendor is the vendor of its GPUs.
	Vendor string
	// Program is its name for readers.
	Program string
	// Prefixes are prefixes of the deployment that are known.
	Prefixes []string
	// Families are what the names of its families begin with.
	Families []string
	// Label, if not empty, is on every series of a GPU; a body without it is not of this
	// exporter.
	Label string
	// Unknown is the prefix of the names of families that the catalogue does not have.
	Unknown string
}
