package runtime

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"strconv"

	v1 "k8s.io/api/core/v1"
)

// ContainerHash is the hash that a container carries as an annotation: when the spec's
// hash differs from it, the container is replaced. It covers name and image, and must come
// out as the reference kubelet's, or a change of kubelet would restart every container.
// That kubelet hashes the Go syntax of the JSON of the two fields.
func ContainerHash(c *v1.Container) string {
	fields, err := json.Marshal(map[string]string{"name": c.Name, "image": c.Image})
	if err != nil {
		panic(err) // strings always marshal
	}
	h := fnv.New32a()
	fmt.Fprintf(h, "([]uint8)%v", fields)
	return strconv.FormatUint(uint64(h.Sum32()), 16)
}
