package pod

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
)

// maxNameBytes is the longest name of a file.
const maxNameBytes = 255

// CheckNames returns an error if a name of the pod cannot be a part of a path: directories are made and
// removed by these names. The API server accepts no such name.
func CheckNames(p *v1.Pod) error {
	if err := checkNames("", p.Name, "metadata.name", p.Namespace, "metadata.namespace", string(p.UID), "metadata.uid"); err != nil {
		return err
	}
	for i := range p.Spec.Volumes {
		if err := checkNames(fmt.Sprintf("spec.volumes[%d].", i), p.Spec.Volumes[i].Name, "name"); err != nil {
			return err
		}
	}
	for c, kind := range Containers(p) {
		if err := checkNames(fmt.Sprintf("%v container: ", kind), c.Name, "name"); err != nil {
			return err
		}
	}
	return nil
}

// checkNames takes pairs of a name and its field.
func checkNames(prefix string, pairs ...string) error {
	for i := 0; i < len(pairs); i += 2 {
		name, field := pairs[i], prefix+pairs[i+1]
		switch reasons := content.IsPathSegmentName(name); {
		case name == "":
			return fmt.Errorf("check names of pod: %s is empty", field)
		case len(name) > maxNameBytes:
			return fmt.Errorf("check names of pod: %s has %d bytes, more than %d", field, len(name), maxNameBytes)
		case strings.ContainsRune(name, 0):
			return fmt.Errorf("check names of pod: %s %q contains a zero byte", field, name)
		case len(reasons) > 0:
			return fmt.Errorf("check names of pod: %s %q %s", field, name, reasons[0])
		}
	}
	return nil
}
