package sandbox

import (
	"context"

	"swiftlet/cri-docker/internal/labels"
)

// ReleaseNetworks frees the addresses of sandboxes that were removed while this program did not run.
func (s *Sandboxes) ReleaseNetworks(ctx context.Context) {
	err := s.Network.ReleaseAll(ctx, func() (map[string]bool, error) {
		found, err := s.Engine.List(ctx, labels.Kind+"="+labels.KindOfPod)
		exists := map[string]bool{}
		for _, item := range found {
			exists[item.ID] = true
		}
		return exists, err
	})
	if err != nil {
		s.Log.Error("failed to release networks of removed sandboxes", "err", err)
	}
}
