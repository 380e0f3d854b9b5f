package conformance

import (
	"context"
	"errors"
	"path/filepath"

	"swiftlet/test/bed"
)

// runLone runs the suite on a lone node.
func runLone(ctx context.Context, b *bed.Bed, registry *bed.Registry, p *Programs, set []Image, names []string, options Options) (outcomes []Outcome, err error) {
	node, err := b.AddLoneNode(ctx, "lone-1")
	if err != nil {
		return nil, err
	}
	if err := node.Mirror(Registry, registry); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, copyLogs(node.LogDir(), filepath.Join(options.Out, "lone-logs"))) }()
	if err := node.Start(ctx); err != nil {
		return nil, err
	}
	var archives []string
	for _, image := range set {
		archives = append(archives, image.Archive)
	}
	if err := node.LoadImages(ctx, archives...); err != nil {
		return nil, err
	}
	return runSuite(ctx, loneTarget(node), p, names, options)
}
