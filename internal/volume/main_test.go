package volume

import (
	"testing"

	"swiftlet/internal/volume/privatens"
)

func TestMain(m *testing.M) { privatens.Main(m) }
