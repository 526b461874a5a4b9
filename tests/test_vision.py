"""Digits, scenes of them, and the small networks that see them."""

from itertools import pairwise

import pytest
import torch

from course_utils import vision
from course_utils.transformer import Config
from course_utils.vision import DIGIT, DIGITS, GRID, SIDE, Labelled


@pytest.fixture(scope="module")
def pool():
    return vision.digits()[0]


def test_fewer_than_no_digits_to_test_on_are_refused():
    with pytest.raises(ValueError, match="n_test is -1"):
        vision.digits(n_test=-1)


def test_no_digit_is_both_learned_and_tested():
    train, test = vision.digits(seed=3)
    assert (len(train.images), len(test.images)) == (1437, 360)
    both = torch.cat([train.images, test.images]).flatten(1)
    everything = torch.cat([*(part.images for part in vision.digits(seed=4))]).flatten(1)
    assert torch.equal(both.sum(dim=1).sort().values, everything.sum(dim=1).sort().values)
    assert both.min() >= 0
    assert both.max() == 1


def test_a_scene_shows_what_its_caption_says(pool):
    for scene in vision.scenes(200, pool, seed=1):
        names = [word for word in scene.caption if word in DIGITS]
        assert len(names) == len(scene.corners)
        assert 2 <= len(names) <= 4
        drawn = torch.zeros(SIDE, SIDE)
        for name, (top, left) in zip(names, scene.corners, strict=True):
            part = scene.image[top:top + DIGIT, left:left + DIGIT]
            same = (pool.images == part).all(dim=(1, 2))
            assert DIGITS[pool.labels[same][0]] == name
            drawn[top:top + DIGIT, left:left + DIGIT] = part
        assert torch.equal(drawn, scene.image), "nothing else is in the picture"


def test_left_of_and_above_are_true(pool):
    for scene in vision.scenes(200, pool, seed=2):
        relations = [word for word in scene.caption if word in ("left", "above")]
        for relation, ((top, left), (next_top, next_left)) in zip(relations, pairwise(scene.corners), strict=True):
            assert left < next_left if relation == "left" else top < next_top
        words = " ".join(scene.caption)
        assert "a eight" not in words
        assert words.count("an ") == words.count("eight")


def test_scenes_come_again_with_their_seed(pool):
    first, again, other = (vision.scenes(5, pool, seed) for seed in (1, 1, 2))
    assert [scene.caption for scene in first] == [scene.caption for scene in again]
    assert [scene.caption for scene in first] != [scene.caption for scene in other]


def test_on_digit_names_the_regions_with_ink_of_it_and_of_no_other(pool):
    size = SIDE // GRID
    for scene in vision.scenes(20, pool, seed=5):
        for number, (top, left) in enumerate(scene.corners):
            ink = {(y // size, x // size) for y, x in scene.image.nonzero().tolist()
                   if top <= y < top + DIGIT and left <= x < left + DIGIT}
            expected = [(row, column) in ink for row in range(GRID) for column in range(GRID)]
            assert vision.on_digit(scene, number).tolist() == expected


def test_a_region_with_an_empty_edge_of_the_box_is_not_on_the_digit():
    image = torch.zeros(SIDE, SIDE)
    image[0, 0] = 1
    scene = vision.Scene(image, ["a", "one"], [(0, 0)])
    assert vision.on_digit(scene, 0).nonzero().tolist() == [[0]]


def test_the_cnn_sees_a_grid_of_regions(pool):
    cnn = vision.DigitCNN().eval()
    assert vision.features(cnn, vision.scenes(3, pool, seed=0)).shape == (3, 64, GRID, GRID)
    assert cnn(torch.zeros(2, 16, 16)).shape == (2, 10)
    assert vision.small_cnn()(pool.images[:2]).shape == (2, 10)


def test_features_are_those_of_evaluation(pool):
    """Batch normalization takes the running means, and they stay; afterwards the CNN learns on, if it did."""
    cnn, drawn = vision.DigitCNN(), vision.scenes(3, pool, seed=0)
    seen = vision.features(cnn.train(), drawn)
    assert cnn.training
    assert int(cnn.features[1].num_batches_tracked) == 0
    assert torch.equal(seen, vision.features(cnn.eval(), drawn))


def test_digits_are_learned(pool):
    torch.manual_seed(0)
    cnn = vision.learn_digits(pool, seed=0, steps=60)
    assert not cnn.training
    placed = torch.zeros(100, 16, 16)
    placed[:, 4:12, 4:12] = pool.images[:100]
    with torch.no_grad():
        assert (cnn(placed).argmax(dim=1) == pool.labels[:100]).float().mean() > 0.6


def test_a_vision_transformer_looks_at_sixteen_patches_row_after_row(pool):
    model = vision.ViT(Config(d_model=16, n_heads=2, n_layers=3, d_ff=8)).eval()
    logits, weights = model(pool.images[:5], need_weights=True)
    assert (logits.shape, weights.shape) == ((5, 10), (5, 3, 2, 17, 17))
    torch.testing.assert_close(model(pool.images[:5]), logits)
    embedded = []
    model.embed.register_forward_hook(lambda _, given, __: embedded.append(given[0]))
    model(pool.images[:1])
    torch.testing.assert_close(embedded[0][0, 5], pool.images[0, 2:4, 2:4].flatten())


def test_label_loss_counts_labels(pool):
    some = Labelled(*(part[:7] for part in pool))
    loss, n = vision.label_loss(vision.small_cnn(), some)
    assert n == 7
    assert loss.dim() == 0
