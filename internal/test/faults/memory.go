package faults

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
)

// memory is what a process uses, in bytes.
type memory struct{ now, peak int64 }

var memoryLines = regexp.MustCompile(`(?m)^(VmHWM|VmRSS):\s+(\d+) kB$`)

// memoryOf reads the resident memory of a process from Linux.
func memoryOf(pid int) (memory, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return memory{}, err
	}
	var m memory
	for _, line := range memoryLines.FindAllSubmatch(status, -1) {
		kb, err := strconv.ParseInt(string(line[2]), 10, 64)
		if err != nil {
			return memory{}, err
		}
		if string(line[1]) == "VmHWM" {
			m.peak = kb << 10
		} else {
			m.now = kb << 10
		}
	}
	return m, nil
}
