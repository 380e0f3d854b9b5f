package agent

import (
	"path/filepath"
	"time"

	"swiftlet/internal/image"
)

func (a *Agent) makeImages() (err error) {
	kc := &a.cfg.Kubelet
	parallel := 0
	if kc.MaxParallelImagePulls != nil {
		parallel = int(*kc.MaxParallelImagePulls)
	}
	if err := a.makeCollector(); err != nil {
		return err
	}
	credentials, err := a.newCredentialFinder()
	if err != nil {
		return err
	}
	a.pods.images, err = image.New(image.Config{
		Serialize:   *kc.SerializeImagePulls,
		MaxParallel: parallel,
		QPS:         float32(*kc.RegistryPullQPS),
		Burst:       int(kc.RegistryBurst),
		Verify:      a.imageVerification(),
	}, image.Deps{
		Images: a.cri, Credentials: credentials.Find, Handed: a.pods.collector.Handed, Fetched: a.pods.collector.Pulled,
		Events: a.api.events, Meters: a.metrics.Image(), Clock: a.clock, Log: a.log,
	})
	return err
}

// imageVerification keeps its records where the reference kubelet does.
func (a *Agent) imageVerification() image.Verification {
	if !a.cfg.Features.KubeletEnsureSecretPulledImages {
		return image.Verification{}
	}
	return image.Verification{
		Dir:     filepath.Join(a.cfg.Flags.RootDir, "image_manager"),
		Policy:  a.cfg.Kubelet.ImagePullCredentialsVerificationPolicy,
		Allowed: a.cfg.Kubelet.PreloadedImagesVerificationAllowlist,
	}
}

// makeCollector makes what removes images.
func (a *Agent) makeCollector() (err error) {
	kc := &a.cfg.Kubelet
	a.pods.collector, err = image.NewCollector(image.CollectorConfig{
		High:   int(*kc.ImageGCHighThresholdPercent),
		Low:    int(*kc.ImageGCLowThresholdPercent),
		MinAge: kc.ImageMinimumGCAge.Duration,
		MaxAge: kc.ImageMaximumGCAge.Duration,
	}, image.CollectorDeps{
		Images:    a.cri,
		InUse:     image.InUse(a.cri, a.pods.observer.List),
		Left:      func(ids []string, began time.Time) { a.pods.images.Forget(ids, began) },
		Events:    a.api.events,
		Node:      a.nodeRef(),
		Collected: a.metrics.ImagesCollected(),
		Clock:     a.clock,
		Log:       a.log,
	})
	return err
}
