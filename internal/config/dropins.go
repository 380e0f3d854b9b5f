package config

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"path/filepath"

	kubelet "k8s.io/kubelet/config/v1beta1"
)

// findDropins lists the *.conf files below dir in the order of their paths, in which they apply, and
// the files that it skips.
func findDropins(dir string) (files, skipped []string, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || d.IsDir():
			return err
		case filepath.Ext(path) == ".conf":
			files = append(files, path)
		default:
			skipped = append(skipped, path)
		}
		return nil
	})
	if err != nil {
		return nil, nil, fmt.Errorf("list drop-ins: %w", err)
	}
	return files, skipped, nil
}

// applyDropins merges the drop-ins into kc as JSON merge patches (RFC 7386): maps are merged by key,
// lists and scalars are replaced, and null restores the default.
func applyDropins(kc *kubelet.KubeletConfiguration, files []string, origins Origins, flagGates map[string]bool) (errs Errors, err error) {
	merged, err := toValues(kc)
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		d, fileErrs, err := readDocument(file)
		if err != nil {
			return nil, err
		}
		if d == nil {
			return nil, fileErrs
		}
		errs = append(errs, fileErrs...)
		merged = mergePatch(merged, d.values)
		d.recordOrigins(origins)
	}
	*kc = kubelet.KubeletConfiguration{}
	if err := decodeStrict("merged drop-ins", merged, kc); err != nil {
		return nil, err
	}
	applyDefaults(kc, gatesWith(kc, flagGates))
	return errs, nil
}

func mergePatch(base, patch map[string]any) map[string]any {
	if base == nil {
		base = map[string]any{}
	}
	for key, value := range patch {
		switch value := value.(type) {
		case nil:
			delete(base, key)
		case map[string]any:
			nested, _ := base[key].(map[string]any)
			base[key] = mergePatch(nested, value)
		default:
			base[key] = value
		}
	}
	return base
}

// toValues converts kc to generic JSON. Numbers keep their notation.
func toValues(kc *kubelet.KubeletConfiguration) (map[string]any, error) {
	text, err := json.Marshal(kc)
	if err != nil {
		return nil, fmt.Errorf("encode configuration: %w", err)
	}
	return decodeValues(text)
}
