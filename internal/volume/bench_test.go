package volume

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

// BenchmarkMountUnmount is the cost to mount and unmount one volume of each kind.
func BenchmarkMountUnmount(b *testing.B) {
	for _, k := range kinds {
		b.Run(k.name, func(b *testing.B) {
			n := newNode(b)
			for i := 0; b.Loop(); i++ {
				p := n.pod(k.source)
				p.UID = types.UID(fmt.Sprintf("uid-%d", i))
				if _, err := n.Mount(b.Context(), p); err != nil {
					b.Fatal(err)
				}
				if err := n.Unmount(b.Context(), p.UID); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
