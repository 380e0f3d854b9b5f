package browser

import (
	"bytes"
	"cmp"
	"image"
	"image/color"
	"image/png"
	"maps"
	"slices"
)

// Colours that differ less than this, of 3×255, are shown as one. A palette has 256.
const differs = 8

// smaller is the picture with its most frequent colours, the others replaced by those.
func smaller(picture []byte) ([]byte, error) {
	full, err := png.Decode(bytes.NewReader(picture))
	if err != nil {
		return nil, err
	}
	bounds := full.Bounds()
	count := map[color.RGBA]int{}
	each := func(f func(x, y int, c color.RGBA)) {
		for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
			for x := bounds.Min.X; x < bounds.Max.X; x++ {
				f(x, y, color.RGBAModel.Convert(full.At(x, y)).(color.RGBA))
			}
		}
	}
	each(func(_, _ int, c color.RGBA) { count[c]++ })
	frequent := slices.SortedFunc(maps.Keys(count), func(a, b color.RGBA) int { return cmp.Compare(count[b], count[a]) })
	var palette color.Palette
	for _, c := range frequent {
		if len(palette) < 256 && !slices.ContainsFunc(palette, func(other color.Color) bool { return distance(c, other.(color.RGBA)) < differs }) {
			palette = append(palette, c)
		}
	}
	index := map[color.RGBA]uint8{}
	reduced := image.NewPaletted(bounds, palette)
	each(func(x, y int, c color.RGBA) {
		i, known := index[c]
		if !known {
			i = uint8(palette.Index(c))
			index[c] = i
		}
		reduced.SetColorIndex(x, y, i)
	})
	var b bytes.Buffer
	err = (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&b, reduced)
	return b.Bytes(), err
}

func distance(a, b color.RGBA) int {
	return abs(int(a.R)-int(b.R)) + abs(int(a.G)-int(b.G)) + abs(int(a.B)-int(b.B))
}

func abs(n int) int { return max(n, -n) }
