package gpu

// Peak is the peak throughput of one GPU, as its vendor states it: dense tensor (or
// matrix) operations, not the doubled numbers for structured sparsity, and not
// what a real kernel reaches. 0 means not supported or not stated.
type Peak struct {
	Name            string
	BF16, FP16      float64 // FLOP/s
	FP8, FP4        float64 // FLOP/s
	MemoryBandwidth float64 // By/s
	Source          string  // the vendor's document

	// aliases are what drivers and Kubernetes labels call it.
	aliases []string
}

const tera = 1e12

// table lists GPUs whose vendor publishes the numbers. Where a data sheet states
// only the number with sparsity, half of it stands here: this is how NVIDIA's
// footnotes define the relation.
//
// Not here are GPUs without a public data sheet of the vendor (H20, H800, A800),
// systems that share memory with a CPU (GH200), and parts of a GPU (MIG).
var table = []Peak{
	{
		Name: "V100-PCIe", FP16: 112 * tera, MemoryBandwidth: 0.9 * tera,
		Source:  "NVIDIA V100 Tensor Core GPU data sheet",
		aliases: []string{"Tesla-V100-PCIE-16GB", "Tesla-V100-PCIE-32GB"},
	},
	{
		Name: "V100-SXM", FP16: 125 * tera, MemoryBandwidth: 0.9 * tera,
		Source:  "NVIDIA V100 Tensor Core GPU data sheet",
		aliases: []string{"Tesla-V100-SXM2-16GB", "Tesla-V100-SXM2-32GB"},
	},
	{
		// The data sheet rounds the bandwidth to 300 GB/s; 320 is bus width times clock.
		Name: "T4", FP16: 65 * tera, MemoryBandwidth: 0.32 * tera,
		Source:  "NVIDIA T4 product brief; T4 Tensor Core GPU data sheet",
		aliases: []string{"Tesla-T4", "T4-16GB"},
	},
	{
		Name: "A100-PCIe-40GB", BF16: 312 * tera, FP16: 312 * tera, MemoryBandwidth: 1.555 * tera,
		Source:  "NVIDIA A100 Tensor Core GPU data sheet",
		aliases: []string{"NVIDIA-A100-PCIE-40GB"},
	},
	{
		Name: "A100-PCIe-80GB", BF16: 312 * tera, FP16: 312 * tera, MemoryBandwidth: 1.935 * tera,
		Source:  "NVIDIA A100 Tensor Core GPU data sheet",
		aliases: []string{"NVIDIA-A100-80GB-PCIe"},
	},
	{
		Name: "A100-SXM-40GB", BF16: 312 * tera, FP16: 312 * tera, MemoryBandwidth: 1.555 * tera,
		Source:  "NVIDIA A100 Tensor Core GPU data sheet",
		aliases: []string{"NVIDIA-A100-SXM4-40GB"},
	},
	{
		Name: "A100-SXM-80GB", BF16: 312 * tera, FP16: 312 * tera, MemoryBandwidth: 2.039 * tera,
		Source:  "NVIDIA A100 Tensor Core GPU data sheet",
		aliases: []string{"NVIDIA-A100-SXM4-80GB"},
	},
	{
		Name: "A10", BF16: 125 * tera, FP16: 125 * tera, MemoryBandwidth: 0.6 * tera,
		Source:  "NVIDIA A10 Tensor Core GPU data sheet",
		aliases: []string{"NVIDIA-A10", "A10-24GB"},
	},
	{
		// Not an A10: little more than half of its tensor throughput.
		Name: "A10G", BF16: 70 * tera, FP16: 70 * tera, MemoryBandwidth: 0.6 * tera,
		Source:  "NVIDIA A10G data sheet, published by AWS",
		aliases: []string{"NVIDIA-A10G", "A10G-24GB"},
	},
	{
		Name: "L4", BF16: 121 * tera, FP16: 121 * tera, FP8: 242.5 * tera, MemoryBandwidth: 0.3 * tera,
		Source:  "NVIDIA L4 Tensor Core GPU data sheet (with sparsity: 242, 485)",
		aliases: []string{"NVIDIA-L4", "L4-24GB"},
	},
	{
		Name: "L40S", BF16: 362.05 * tera, FP16: 362.05 * tera, FP8: 733 * tera, MemoryBandwidth: 0.864 * tera,
		Source:  "NVIDIA L40S data sheet",
		aliases: []string{"NVIDIA-L40S", "L40S-48GB"},
	},
	{
		Name: "H100-PCIe", BF16: 756.5 * tera, FP16: 756.5 * tera, FP8: 1513 * tera, MemoryBandwidth: 2 * tera,
		Source:  "NVIDIA H100 Tensor Core GPU data sheet (with sparsity: 1513, 3026)",
		aliases: []string{"NVIDIA-H100-PCIe", "H100-80GB-PCIe"},
	},
	{
		Name: "H100-SXM", BF16: 989.5 * tera, FP16: 989.5 * tera, FP8: 1979 * tera, MemoryBandwidth: 3.35 * tera,
		Source: "NVIDIA H100 Tensor Core GPU data sheet (with sparsity: 1979, 3958)",
		// Of the H100s with 80 GB only the SXM module has HBM3.
		aliases: []string{"NVIDIA-H100-80GB-HBM3", "H100-SXM5-80GB"},
	},
	{
		Name: "H100-NVL", BF16: 835.5 * tera, FP16: 835.5 * tera, FP8: 1670.5 * tera, MemoryBandwidth: 3.9 * tera,
		Source:  "NVIDIA H100 Tensor Core GPU data sheet (with sparsity: 1671, 3341; one card)",
		aliases: []string{"NVIDIA-H100-NVL", "H100-NVL-94GB"},
	},
	{
		Name: "H200-SXM", BF16: 989.5 * tera, FP16: 989.5 * tera, FP8: 1979 * tera, MemoryBandwidth: 4.8 * tera,
		Source: "NVIDIA H200 Tensor Core GPU data sheet (with sparsity: 1979, 3958)",
		// The card of the other form factor has "NVL" in its name.
		aliases: []string{"NVIDIA-H200", "H200-SXM5-141GB", "H200-141GB"},
	},
	{
		Name: "H200-NVL", BF16: 835.5 * tera, FP16: 835.5 * tera, FP8: 1670.5 * tera, MemoryBandwidth: 4.8 * tera,
		Source:  "NVIDIA H200 Tensor Core GPU data sheet (with sparsity: 1671, 3341)",
		aliases: []string{"NVIDIA-H200-NVL", "H200-NVL-141GB"},
	},
	{
		Name: "B200", BF16: 2250 * tera, FP16: 2250 * tera, FP8: 4500 * tera, FP4: 9000 * tera, MemoryBandwidth: 7.7 * tera,
		Source:  "NVIDIA Blackwell data sheet, HGX B200, one GPU (with sparsity: 4500, 9000, 18000)",
		aliases: []string{"NVIDIA-B200", "B200-SXM", "B200-180GB"},
	},
	{
		Name: "GB200", BF16: 2500 * tera, FP16: 2500 * tera, FP8: 5000 * tera, FP4: 10000 * tera, MemoryBandwidth: 8 * tera,
		Source:  "NVIDIA Blackwell data sheet, GB200 NVL72, one GPU (with sparsity: 5000, 10000, 20000)",
		aliases: []string{"NVIDIA-GB200", "GB200-NVL72"},
	},
	{
		Name: "MI300X", BF16: 1307.4 * tera, FP16: 1307.4 * tera, FP8: 2614.9 * tera, MemoryBandwidth: 5.3 * tera,
		Source:  "AMD Instinct MI300X accelerator data sheet",
		aliases: []string{"AMD-Instinct-MI300X-OAM", "MI300X-192GB"},
	},
	{
		Name: "MI325X", BF16: 1307.4 * tera, FP16: 1307.4 * tera, FP8: 2614.9 * tera, MemoryBandwidth: 6 * tera,
		Source:  "AMD Instinct MI325X accelerator data sheet",
		aliases: []string{"AMD-Instinct-MI325X-OAM", "MI325X-256GB"},
	},
}
