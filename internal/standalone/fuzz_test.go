package standalone

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// FuzzIndex: the index of an image archive is a list of images or an error.
func FuzzIndex(f *testing.F) {
	f.Add([]byte(`{"manifests":[{"digest":"sha256:a","annotations":{"io.containerd.image.name":"docker.io/a:1"}}]}`))
	f.Add([]byte("null"))
	f.Fuzz(func(t *testing.T, data []byte) {
		images, err := namesInIndex(bytes.NewReader(data))
		if err != nil && images != nil {
			t.Errorf("%v with %v", images, err)
		}
		file := filepath.Join(t.TempDir(), "image.tar")
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		_, _ = imagesIn(file)
	})
}

// FuzzBundleHashes: the list is hashes of 64 digits or an error.
func FuzzBundleHashes(f *testing.F) {
	f.Add("runc=0000000000000000000000000000000000000000000000000000000000000000")
	f.Add(",=")
	f.Fuzz(func(t *testing.T, list string) {
		hashes, err := ParseBundleHashes(list)
		if err != nil {
			return
		}
		for name, sum := range hashes {
			if len(sum) != 64 {
				t.Errorf("%s: %q", name, sum)
			}
		}
	})
}

// FuzzLayers: what a registry sends as a manifest gives digests that are no paths, and sizes that add up.
func FuzzLayers(f *testing.F) {
	f.Add([]byte(`{"schemaVersion":2,"layers":[{"digest":"sha256:0000000000000000000000000000000000000000000000000000000000000000","size":7}]}`))
	f.Add([]byte(`{"layers":[{"digest":"sha256:../../x","size":1},{"digest":"sha256:","size":-1},{"digest":"","size":9223372036854775807}]}`))
	f.Add([]byte(`{"manifests":[{"digest":"sha256:a"}]}`))
	f.Add([]byte("null"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var total int64
		for digest, size := range layersIn(data) {
			if len(digest) != 64 || filepath.Base(digest) != digest || filepath.Clean(digest) != digest {
				t.Errorf("%q is no digest", digest)
			}
			if total += size; size < 0 || total < 0 {
				t.Errorf("size %d, in all %d", size, total)
			}
		}
	})
}
