//! Sets of pixels as rectangles that do not overlap.

/// Reaches from (x, y), inclusive, to (right, bottom), exclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rect {
    pub x: i32,
    pub y: i32,
    pub right: i32,
    pub bottom: i32,
}

impl Rect {
    pub fn new(x: i32, y: i32, width: i32, height: i32) -> Rect {
        Rect { x, y, right: x.saturating_add(width), bottom: y.saturating_add(height) }
    }

    pub fn moved(self, x: i32, y: i32) -> Rect {
        Rect {
            x: self.x.saturating_add(x),
            y: self.y.saturating_add(y),
            right: self.right.saturating_add(x),
            bottom: self.bottom.saturating_add(y),
        }
    }

    /// With a border around it.
    pub fn grown(self, border: i32) -> Rect {
        Rect {
            x: self.x.saturating_sub(border),
            y: self.y.saturating_sub(border),
            right: self.right.saturating_add(border),
            bottom: self.bottom.saturating_add(border),
        }
    }

    pub fn and(self, other: Rect) -> Option<Rect> {
        let both = Rect {
            x: self.x.max(other.x),
            y: self.y.max(other.y),
            right: self.right.min(other.right),
            bottom: self.bottom.min(other.bottom),
        };
        (both.x < both.right && both.y < both.bottom).then_some(both)
    }

    pub fn area(self) -> u64 {
        let length = |from: i32, to: i32| (i64::from(to) - i64::from(from)).max(0) as u64;
        length(self.x, self.right) * length(self.y, self.bottom)
    }

    /// What is left of it without the other: at most four rectangles.
    fn minus(self, other: Rect) -> Vec<Rect> {
        let Some(hole) = self.and(other) else { return vec![self] };
        let parts = [
            Rect { bottom: hole.y, ..self },
            Rect { y: hole.y, bottom: hole.bottom, right: hole.x, ..self },
            Rect { y: hole.y, bottom: hole.bottom, x: hole.right, ..self },
            Rect { y: hole.bottom, ..self },
        ];
        parts.into_iter().filter(|part| part.area() > 0).collect()
    }
}

/// Rectangles that do not overlap.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Region(Vec<Rect>);

/// Rectangles of one region: a window with a more ragged outline counts as its own box. Bounds what
/// a client can make the monitor compute.
pub const MOST_RECTS: usize = 512;

impl Region {
    /// The rectangles may overlap.
    pub fn of(rects: impl IntoIterator<Item = Rect>) -> Region {
        let mut region = Region::default();
        for rect in rects {
            let mut parts = vec![rect];
            for &there in &region.0 {
                parts = parts.into_iter().flat_map(|part| part.minus(there)).collect();
            }
            region.0.extend(parts.into_iter().filter(|part| part.area() > 0));
        }
        region
    }

    pub fn minus(&mut self, other: &Region) {
        for &hole in &other.0 {
            let parts: Vec<Rect> = self.0.iter().flat_map(|rect| rect.minus(hole)).collect();
            if parts.len() > MOST_RECTS {
                return;
            }
            self.0 = parts;
        }
    }

    pub fn moved(&self, x: i32, y: i32) -> Region {
        Region(self.0.iter().map(|rect| rect.moved(x, y)).collect())
    }

    pub fn and(&self, other: Rect) -> Region {
        Region(self.0.iter().filter_map(|rect| rect.and(other)).collect())
    }

    pub fn area(&self) -> u64 {
        self.0.iter().map(|rect| rect.area()).sum()
    }

    /// The area of the rectangles, which do not overlap, inside this region.
    pub fn area_of(&self, rects: impl IntoIterator<Item = Rect>) -> u64 {
        let inside =
            |rect: Rect| self.0.iter().filter_map(move |own| own.and(rect)).map(Rect::area);
        rects.into_iter().flat_map(inside).sum()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rects(most: usize) -> impl Strategy<Value = Vec<Rect>> {
        let rect = (0..20i32, 0..20i32, 0..12i32, 0..12i32)
            .prop_map(|(x, y, width, height)| Rect::new(x, y, width, height));
        proptest::collection::vec(rect, 0..most)
    }

    fn contains(rect: &Rect, x: i32, y: i32) -> bool {
        (rect.x..rect.right).contains(&x) && (rect.y..rect.bottom).contains(&y)
    }

    fn has(region: &[Rect], x: i32, y: i32) -> bool {
        region.iter().any(|rect| contains(rect, x, y))
    }

    proptest! {
        /// Pixel by pixel.
        #[test]
        fn regions_are_sets_of_pixels(a in rects(8), b in rects(8), clip in rects(2)) {
            let region = Region::of(a.clone());
            let mut rest = region.clone();
            rest.minus(&Region::of(b.clone()));
            let clip = clip.first().copied().unwrap_or(Rect::new(3, 3, 9, 9));
            let clipped = region.and(clip);
            let (mut area, mut left, mut inside) = (0, 0, 0);
            for x in 0..32 {
                for y in 0..32 {
                    let (in_a, in_b) = (has(&a, x, y), has(&b, x, y));
                    prop_assert_eq!(has(&region.0, x, y), in_a);
                    prop_assert_eq!(has(&rest.0, x, y), in_a && !in_b);
                    prop_assert_eq!(has(&clipped.0, x, y), in_a && contains(&clip, x, y));
                    area += u64::from(in_a);
                    left += u64::from(in_a && !in_b);
                    inside += u64::from(in_a && contains(&clip, x, y));
                }
            }
            // Areas agree only if no two rectangles overlap.
            prop_assert_eq!(region.area(), area);
            prop_assert_eq!(rest.area(), left);
            prop_assert_eq!(region.area_of([clip]), inside);
        }
    }

    #[test]
    fn a_rectangle_at_the_edge_of_the_numbers_does_not_overflow() {
        let far = Rect::new(i32::MAX - 5, i32::MAX - 5, 40, 40);
        assert_eq!(far.area(), 25);
        assert_eq!(Rect::new(5, 5, -4, 3).area(), 0);
    }
}
