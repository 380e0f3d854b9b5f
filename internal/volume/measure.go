package volume

import (
	"time"

	"swiftlet/internal/volume/plugin"
)

// unknownKind is how the reference kubelet counts volumes that no plugin claims.
const unknownKind = "N/A"

// qualifiedKind is the kind of a volume, with its driver where a kind has several.
func qualifiedKind(kind plugin.Plugin, spec plugin.Spec) string {
	if kind == nil {
		return unknownKind
	}
	if driver := driverOf(kind, spec); driver != "" {
		return kind.Name() + ":" + driver
	}
	return kind.Name()
}

// driverOf is the driver that serves the volume, "" where its kind has none.
func driverOf(kind plugin.Plugin, spec plugin.Spec) string {
	if driven, ok := kind.(plugin.DriverNamer); ok {
		return driven.DriverName(spec)
	}
	return ""
}

func (u up) qualifiedKind() string { return qualifiedKind(u.kind, u.spec) }

func (v *Volumes) measure(kind string, operation Operation, began time.Time, err error) {
	if v.deps.Meters.Operation != nil {
		v.deps.Meters.Operation(kind, operation, v.deps.Clock.Since(began), err)
	}
}

// Tally is how many volumes there are, by kind.
type Tally struct{ Wanted, Mounted map[string]int }

// Tally counts the volumes of all pods. The kind of a claim is known once it is mounted.
func (v *Volumes) Tally() Tally {
	t := Tally{Wanted: map[string]int{}, Mounted: map[string]int{}}
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, pv := range v.pods {
		for _, name := range wanted(pv.pod) {
			if state := pv.volumes[name]; state != nil && state.mounted {
				t.Mounted[state.up.qualifiedKind()]++
				t.Wanted[state.up.qualifiedKind()]++
				continue
			}
			spec := plugin.Spec{Volume: findVolume(pv.pod, name)}
			t.Wanted[qualifiedKind(v.kindFor(spec), spec)]++
		}
	}
	return t
}
