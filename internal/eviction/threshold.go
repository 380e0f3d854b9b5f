package eviction

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Threshold is the lowest acceptable level of a signal.
type Threshold struct {
	Signal Signal
	Value  Amount
	// GracePeriod is how long the level may be lower before pods are evicted. It is zero for
	// a hard threshold.
	GracePeriod time.Duration
	// MinReclaim is how far above Value the level must rise before the threshold, once met,
	// is no longer met.
	MinReclaim Amount
}

func (t Threshold) hard() bool { return t.GracePeriod == 0 }

// floor is the level below which the threshold is met, or stays met.
func (t Threshold) floor(capacity int64, wasMet bool) int64 {
	floor := t.Value.of(capacity)
	if wasMet {
		floor += t.MinReclaim.of(capacity)
	}
	return floor
}

// Amount is a quantity, or if that is nil a part of the capacity.
type Amount struct {
	Quantity *resource.Quantity
	// Percentage is from 0 to 1. It has single precision, as in the reference kubelet, so that
	// both kubelets compute the same threshold.
	Percentage float32
}

func (a Amount) of(capacity int64) int64 {
	if a.Quantity != nil {
		return a.Quantity.Value()
	}
	return int64(float64(capacity) * float64(a.Percentage))
}

// text formats the amount for messages.
func (a Amount) text(capacity int64) string {
	if a.Quantity != nil {
		return a.Quantity.String()
	}
	return resource.NewQuantity(a.of(capacity), resource.BinarySI).String()
}

// Settings are the configuration fields for thresholds, by signal.
type Settings struct {
	Hard, Soft, SoftGracePeriod, MinimumReclaim map[string]string
	// Allocatable applies the hard memory threshold also to the memory limit of all pods.
	Allocatable bool
}

// Thresholds parses the settings. It returns the most urgent threshold first.
func (s Settings) Thresholds() ([]Threshold, error) {
	hard, err := s.parse("evictionHard", s.Hard)
	if err != nil {
		return nil, err
	}
	soft, err := s.parse("evictionSoft", s.Soft)
	if err != nil {
		return nil, err
	}
	for i := range soft {
		signal := string(soft[i].Signal)
		text, ok := s.SoftGracePeriod[signal]
		if !ok {
			return nil, fmt.Errorf("evictionSoft.%s: needs evictionSoftGracePeriod.%s", signal, signal)
		}
		if soft[i].GracePeriod, err = time.ParseDuration(text); err != nil || soft[i].GracePeriod < 0 {
			return nil, fmt.Errorf("evictionSoftGracePeriod.%s: %q is not a period of time", signal, text)
		}
	}
	all := append(hard, soft...)
	if s.Allocatable {
		for _, t := range all {
			if t.Signal == MemoryAvailable && t.hard() {
				t.Signal = AllocatableMemoryAvailable
				all = append(all, t)
			}
		}
	}
	return sorted(all), nil
}

func (s Settings) parse(field string, texts map[string]string) ([]Threshold, error) {
	var all []Threshold
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		signal, text := Signal(name), texts[name]
		if _, known := signalInfos[signal]; !known {
			return nil, fmt.Errorf("%s.%s: is not an eviction signal", field, name)
		}
		if text == "0%" || text == "100%" {
			continue // turns the threshold off
		}
		least, err := parseAmount(text)
		if err != nil {
			return nil, fmt.Errorf("%s.%s: %w", field, name, err)
		}
		t := Threshold{Signal: signal, Value: least}
		if text, ok := s.MinimumReclaim[name]; ok {
			if t.MinReclaim, err = parseAmount(text); err != nil {
				return nil, fmt.Errorf("evictionMinimumReclaim.%s: %w", name, err)
			}
		}
		all = append(all, t)
	}
	return all, nil
}

func parseAmount(text string) (Amount, error) {
	if percent, ok := strings.CutSuffix(text, "%"); ok {
		number, err := strconv.ParseFloat(percent, 32)
		if err != nil {
			return Amount{}, fmt.Errorf("%q is not a percentage", text)
		}
		if number < 0 || number > 100 {
			return Amount{}, fmt.Errorf("%q is not between 0%% and 100%%", text)
		}
		return Amount{Percentage: float32(number) / 100}, nil
	}
	quantity, err := resource.ParseQuantity(text)
	if err != nil {
		return Amount{}, fmt.Errorf("%q is not a quantity", text)
	}
	if quantity.Sign() < 0 {
		return Amount{}, errors.New("must not be negative")
	}
	return Amount{Quantity: &quantity}, nil
}

// sorted orders by urgency, and hard before soft.
func sorted(all []Threshold) []Threshold {
	slices.SortStableFunc(all, func(a, b Threshold) int {
		return cmp.Or(slices.Index(urgency, a.Signal)-slices.Index(urgency, b.Signal), cmp.Compare(a.GracePeriod, b.GracePeriod))
	})
	return all
}
