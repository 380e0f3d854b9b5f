package config

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	kubelet "k8s.io/kubelet/config/v1beta1"
	"sigs.k8s.io/yaml"
)

// Configz returns the response of /configz.
func Configz(kc *kubelet.KubeletConfiguration) ([]byte, error) {
	text, err := json.Marshal(map[string]any{"kubeletconfig": masked(kc)})
	if err != nil {
		return nil, fmt.Errorf("encode configz: %w", err)
	}
	return text, nil
}

// masked hides the only secrets of the configuration, the headers for static pods.
func masked(kc *kubelet.KubeletConfiguration) *kubelet.KubeletConfiguration {
	if len(kc.StaticPodURLHeader) == 0 {
		return kc
	}
	kc = kc.DeepCopy()
	for name := range kc.StaticPodURLHeader {
		kc.StaticPodURLHeader[name] = []string{"<masked>"}
	}
	return kc
}

// Print writes the configuration as YAML that --config accepts, apart from masked secrets. A comment
// names the origin of each value that is not a default.
func (c *Config) Print(w io.Writer) error {
	values, err := toValues(masked(&c.Kubelet))
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "apiVersion: %s\nkind: %s\n", c.Kubelet.APIVersion, c.Kubelet.Kind)
	delete(values, "apiVersion")
	delete(values, "kind")
	return c.printFields(w, "", "", values)
}

func (c *Config) printFields(w io.Writer, indent, path string, values map[string]any) error {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		value, field := values[name], join(path, name)
		if fields, ok := value.(map[string]any); ok && len(fields) > 0 {
			fmt.Fprintf(w, "%s%s:\n", indent, name)
			if err := c.printFields(w, indent+"  ", field, fields); err != nil {
				return err
			}
			continue
		}
		text, err := yaml.Marshal(map[string]any{name: value})
		if err != nil {
			return fmt.Errorf("print %s: %w", field, err)
		}
		lines := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
		if origin, ok := c.Origins[field]; ok {
			lines[0] += "  # " + origin.String()
		}
		for _, line := range lines {
			fmt.Fprintf(w, "%s%s\n", indent, line)
		}
	}
	return nil
}
