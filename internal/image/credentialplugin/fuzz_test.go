package credentialplugin

import (
	"testing"
)

// FuzzSettings: a configuration of plugins is valid or has problems.
func FuzzSettings(f *testing.F) {
	f.Add([]byte("apiVersion: kubelet.config.k8s.io/v1\nkind: CredentialProviderConfig\nproviders:\n- {name: p, apiVersion: credentialprovider.kubelet.k8s.io/v1, matchImages: ['*.r.io'], defaultCacheDuration: 1m}\n"))
	f.Add([]byte("kind: CredentialProviderConfig\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := decodeDocument("file", data)
		if err != nil {
			return
		}
		for _, p := range d.validate(true, map[string]string{}) {
			if p == nil {
				t.Error("a problem without a text")
			}
		}
	})
}
