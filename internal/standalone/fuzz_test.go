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
