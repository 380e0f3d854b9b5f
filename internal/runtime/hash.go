package runtime

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"strconv"

	v1 "k8s.io/api/core/v1"
)

// ContainerHash is the value of a container's hash annotation: when the hash of the spec
// differs from it, the container is replaced. It covers name and image, and must equal the
// reference kubelet's, or replacing that kubelet would restart every container. The reference
// kubelet hashes the Go syntax of the JSON of the two fields.
func ContainerHash(c *v1.Container) string {
	fields, err := json.Marshal(map[string]string{"name": c.Name, "image": c.Image})
	if err != nil {
		panic(err) // strings always marshal
	}
	h := fnv.New32a()
	fmt.Fprintf(h, "([]uint8)%v", fields)
	return strconv.FormatUint(uint64(h.Sum32()), 16)
}
