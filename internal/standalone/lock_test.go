package standalone

import (
	"log/slog"

	"k8s.io/utils/clock"
)

var realClock = clock.RealClock{}

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }
