package images

import (
	"os"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

func TestBuildIsReproducibleAndComplete(t *testing.T) {
	digests := map[string]string{}
	for range 2 {
		set, err := Build(t.Context(), t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(set.PauseBin); err != nil || info.Mode().Perm()&0o111 == 0 {
			t.Errorf("pause program: %v, %v; want an executable", info, err)
		}
		for ref, path := range set.Archives {
			tag, err := name.NewTag(ref)
			if err != nil {
				t.Fatal(err)
			}
			img, err := tarball.ImageFromPath(path, &tag)
			if err != nil {
				t.Fatalf("archive of %s: %v", ref, err)
			}
			digest, err := img.Digest()
			if err != nil {
				t.Fatal(err)
			}
			if before, ok := digests[ref]; ok && before != digest.String() {
				t.Errorf("%s built twice has digests %s and %s", ref, before, digest)
			}
			digests[ref] = digest.String()
		}
	}
	if len(digests) != 2 {
		t.Errorf("built %v; want busybox and pause", digests)
	}
}
