// The indices of the largest and the smallest elements.
#include "reduce.cuh"

template <class T> struct PlaceRule {
    typedef T In;
    typedef Candidate<wide<T>> Lane;
    typedef Lane Total;
    static HOST_DEVICE CandidateOrder order(u32 function) {
        return CandidateOrder{function == ArgMin || function == LastArgMin,
                              function == LastArgMax || function == LastArgMin};
    }
    static HOST_DEVICE Lane start(u32) { return Lane{0, NOWHERE}; }
    static HOST_DEVICE Lane step(u32 function, Lane lane, T element, u32 place) {
        return order(function).offered(lane, widen(element), place);
    }
    static HOST_DEVICE Total total(Lane lane) { return lane; }
    static HOST_DEVICE Total add(u32 function, Total a, Total b) { return order(function)(a, b); }
    static HOST_DEVICE void finish(const Reduce& p, u32 i, Total total) { at<i64>(p.y)[i] = total.place; }
};

REDUCTION(place, f16, PlaceRule)
REDUCTION(place, bf16, PlaceRule)
REDUCTION(place, f32, PlaceRule)
REDUCTION(place, f64, PlaceRule)
REDUCTION(place, i32, PlaceRule)
REDUCTION(place, i64, PlaceRule)
REDUCTION(place, u32, PlaceRule)
REDUCTION(place, u64, PlaceRule)
REDUCTION(place, i8, PlaceRule)
REDUCTION(place, i16, PlaceRule)
REDUCTION(place, u8, PlaceRule)
REDUCTION(place, u16, PlaceRule)
