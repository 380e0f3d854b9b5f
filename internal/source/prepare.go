package source

import (
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/pod"
)

// Objects takes the ConfigMaps and Secrets that stand beside the pods where there is no
// API server to keep them. What it is given is complete and must not be changed.
type Objects interface {
	SetObjects(configMaps []*v1.ConfigMap, secrets []*v1.Secret)
}

// prepare turns what was written into what can run, or says what is wrong with it.
// standalone allows objects other than pods, and pods that refer to them.
func prepare(m *manifest, origin pod.Origin, standalone bool) error {
	if !standalone && len(m.configMaps)+len(m.secrets) > 0 {
		return errors.New("ConfigMaps and Secrets are read from files only where there is no API server")
	}
	for _, p := range m.pods {
		if p.Name == "" {
			return errors.New("a pod has no name")
		}
		name := p.Name
		pod.MakeStatic(p, origin)
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

// completeSecret does what the API server does on writing: plain strings become data.
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
