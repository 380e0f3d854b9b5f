package stats

import (
	"bytes"

	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// readPressure reads the pressure stall information of a cgroup, nil if the kernel has none.
func readPressure(s *fileReader, dir string) *pressure {
	var p pressure
	for file, into := range map[string]*statsapi.PSIStats{"cpu": &p.cpu, "memory": &p.memory, "io": &p.io} {
		text, err := s.read(dir + "/" + file + ".pressure")
		if err != nil {
			return nil
		}
		*into = parsePressure(text)
	}
	return &p
}

// parsePressure reads lines such as "some avg10=0.00 avg60=0.00 avg300=0.00 total=0". Totals
// stay in the kernel's microseconds, as in the reference kubelet, whatever the API's comment
// says.
func parsePressure(text []byte) statsapi.PSIStats {
	var out statsapi.PSIStats
	for line := range bytes.Lines(text) {
		fields := bytes.Fields(line)
		if len(fields) == 0 {
			continue
		}
		into := &out.Some
		if string(fields[0]) == "full" {
			into = &out.Full
		}
		for _, field := range fields[1:] {
			key, value, _ := bytes.Cut(field, []byte{'='})
			switch string(key) {
			case "avg10":
				into.Avg10 = parseFloat(value)
			case "avg60":
				into.Avg60 = parseFloat(value)
			case "avg300":
				into.Avg300 = parseFloat(value)
			case "total":
				into.Total, _ = parseUint(value)
			}
		}
	}
	return out
}
