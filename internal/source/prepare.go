package source

import (
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/pod"
)

// Objects receives all ConfigMaps and Secrets of the manifests on a node without an API server. It must
// not change them.
type Objects interface {
	SetObjects(configMaps []*v1.ConfigMap, secrets []*v1.Secret)
}

// prepare sets defaults and validates a manifest. standalone allows ConfigMaps and Secrets, and pods that
// refer to them.
func prepare(m *manifest, origin pod.Origin, standalone bool, runs func(types.UID) bool) error {
	if !standalone && len(m.configMaps)+len(m.secrets) > 0 {
		return errors.New("ConfigMaps and Secrets are read from files only where there is no API server")
	}
	for _, p := range m.pods {
		if p.Name == "" {
			return errors.New("a pod has no name")
		}
		name := p.Name
		pod.MakeStatic(p, origin, runs)
		if err := pod.Validate(p); err != nil {
			return fmt.Errorf("pod %q: %w", name, err)
		}
		if standalone {
			continue
		}
		if err := pod.CheckNoAPIReference(p); err != nil {
			return fmt.Errorf("pod %q: %w", name, err)
		}
	}
	for _, c := range m.configMaps {
		if c.Name == "" {
			return errors.New("a ConfigMap has no name")
		}
		if c.Namespace == "" {
			c.Namespace = v1.NamespaceDefault
		}
	}
	for _, s := range m.secrets {
		if s.Name == "" {
			return errors.New("a Secret has no name")
		}
		completeSecret(s)
	}
	return nil
}

// completeSecret sets the API server's defaults and moves stringData to data.
func completeSecret(s *v1.Secret) {
	if s.Namespace == "" {
		s.Namespace = v1.NamespaceDefault
	}
	if s.Type == "" {
		s.Type = v1.SecretTypeOpaque
	}
	if s.Data == nil {
		s.Data = map[string][]byte{}
	}
	for key, value := range s.StringData {
		s.Data[key] = []byte(value)
	}
	s.StringData = nil
}
