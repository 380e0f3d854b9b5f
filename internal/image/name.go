package image

import (
	"fmt"

	"github.com/distribution/reference"
	v1 "k8s.io/api/core/v1"
)

const latest = "latest"

// parseName splits an image name as users write it. repository is the normalized one that
// credentials are looked up by ("docker.io/library/busybox"). complete is the given name, with
// the tag "latest" added if it has neither tag nor digest: the runtime resolves short names.
func parseName(name string) (repository, complete, tag string, err error) {
	named, err := reference.ParseNormalizedNamed(name)
	if err != nil {
		return "", "", "", fmt.Errorf("couldn't parse image name %q: %w", name, err)
	}
	_, digested := named.(reference.Digested)
	tagged, ok := named.(reference.Tagged)
	switch {
	case ok:
		return named.Name(), name, tagged.Tag(), nil
	case digested:
		return named.Name(), name, "", nil
	}
	return named.Name(), name + ":" + latest, latest, nil
}

// policyOf returns the container's pull policy, or the API's default for its image.
func policyOf(c *v1.Container, tag string) v1.PullPolicy {
	switch {
	case c.ImagePullPolicy != "":
		return c.ImagePullPolicy
	case tag == latest:
		return v1.PullAlways
	}
	return v1.PullIfNotPresent
}
